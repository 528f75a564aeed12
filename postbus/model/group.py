"""What a group gives out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from postbus.model.message import Message


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

    @classmethod
    def of(cls, token: str, partition: int, seqs: Sequence[int]) -> Self:
        """The one of these messages, for somebody who knows by himself when it ends."""
        return cls(
            partition=partition, from_seq=seqs[0], to_seq=seqs[-1], message_count=len(seqs), token=token, deadline=None
        )


Claims = Claim | Sequence[Claim]


def as_list(claims: Claims) -> list[Claim]:
    return [claims] if isinstance(claims, Claim) else list(claims)


@dataclass(frozen=True, slots=True, eq=False)
class Fetched:
    """A range that was claimed, and its messages."""

    claim: Claim
    messages: list[Message]

    def batches(self, max_messages: int) -> Iterator[list[Message]]:
        """The messages in order, at most so many at a time."""
        for start in range(0, len(self.messages), max_messages):
            yield self.messages[start : start + max_messages]
