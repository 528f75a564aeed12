"""Conditions for rows, which users write in SQL."""

from __future__ import annotations

import re
from typing import Final

from postbus.model.errors import InvalidInput

_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
_FORBIDDEN: Final = re.compile(r"--|/\*|[;$\\'\"]")


def check(condition: str) -> None:
    """Refuse what is more than one expression: it is put between parentheses, and may not leave them.

    Raises:
        InvalidInput: It has a semicolon, a comment, a dollar sign, a backslash, or parentheses and quotes that do not close.
    """
    rest = _QUOTED.sub("", condition)
    depth = 0
    for character in rest:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
    if depth != 0 or _FORBIDDEN.search(rest) or "\\" in condition or not condition.strip():
        raise InvalidInput(
            f"{condition!r} is not a condition for rows",
            "write one expression over the columns of the table, such as: status <> 'draft' and total > 0",
        )
