"""What a group gives out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A range of a partition that a group has given out.

    Attributes:
        partition: Its partition.
        from_seq: Its first message.
        to_seq: Its last message.
        message_count: How many messages it holds: seqs have gaps.
        token: Names it for `commit`; None when it was given for good.
        deadline: When it is given to somebody else if it is not committed; None likewise.
    """

    partition: int
    from_seq: int
    to_seq: int
    message_count: int
    token: str | None
    deadline: datetime | None


Claims = Claim | Sequence[Claim]


def as_list(claims: Claims) -> list[Claim]:
    return [claims] if isinstance(claims, Claim) else list(claims)
