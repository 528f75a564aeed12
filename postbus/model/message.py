"""A message, before and after it is published, and the pages in which messages are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, overload


# Not frozen: making a frozen one takes several times as long, and there are many.
@dataclass(slots=True, kw_only=True)
class Message:
    """A message of a stream.

    To publish, give `data` and, as a rule, a `key`. seq, partition and published_at are known once it is in the stream.

    Attributes:
        key: Dot-separated tokens that route and order the message; None puts it in any partition.
        data: Any JSON value in a json stream, a str in a text stream, bytes in a bytes stream.
        headers: Strings by name, or None.
        priority: 0 to 9, higher first; 4 is the default. A message of a higher level may overtake others, also those of its key.
        dedup_id: Names the message, so that it is not published twice within the stream's dedup_window.
        seq: Its number: unique and growing in the stream, with gaps.
        partition: The partition that its key belongs to.
        published_at: When it was published, by the clock of Postgres.
    """

    key: str | None = None
    data: Any
    headers: Mapping[str, str] | None = None
    dedup_id: str | None = None
    seq: int | None = None
    partition: int | None = None
    published_at: datetime | None = None
    priority: int = 4


class Seq(int):
    """What publishing answers: the message's seq, or that of the message that it is a duplicate of.

    A duplicate of a scheduled message, which has no seq yet, is 0. Where a stream keeps one message per key, a message is a
    duplicate too if it changes nothing, or if a later one of its batch has its key: it is the seq of the version that stands.

    Attributes:
        is_duplicate: The message was not published, because the message of this seq stands for it.
    """

    __slots__ = ()
    is_duplicate: ClassVar[bool] = False

    @classmethod
    def answered(cls, answer: int) -> Seq:
        """From what SQL answers: a duplicate's is negated, or 0."""
        return cls(answer) if answer > 0 else _Duplicate(-answer)


class _Duplicate(Seq):
    __slots__ = ()
    is_duplicate: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A message that waits outside its stream until its time.

    Attributes:
        id: The number under which it is scheduled.
        deliver_at: When it is published.
        scheduled_at: When it was scheduled.
        ttl: How long it lives from then on; None for ever.
        key: Its key, or None.
        data: Its data.
        headers: Its headers, or None.
        priority: Its priority.
    """

    id: int
    deliver_at: datetime
    scheduled_at: datetime
    ttl: timedelta | None
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    priority: int = 4


@dataclass(frozen=True, slots=True)
class Page(Sequence[Message]):
    """Some messages of a stream, and where to go on reading.

    Attributes:
        messages: The messages, in order. A page may be empty although more pages follow: the search for a rare key stops
            after a while and goes on with the next page.
        resume: The token for the next page; None at the end of the stream, or of the range asked for.
    """

    messages: tuple[Message, ...]
    resume: str | None

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)
