"""The statements by which the server's tokens are stored and found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postbus.db.arrays import TextArray

CREATE: Final = "select t.* from postbus.create_token($1, $2, $3, $4, $5, $6) as t"
LIST: Final = "select t.* from postbus.list_tokens() as t"
REVOKE: Final = "select postbus.revoke_token($1)"
FIND: Final = "select t.* from postbus.find_token($1) as t"


def names(values: Sequence[str]) -> TextArray:
    return TextArray([value.encode() for value in values])
