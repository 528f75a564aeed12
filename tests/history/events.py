"""What a history is made of: one record for each thing that a process asked or was told.

Times are those of CLOCK_MONOTONIC, which all processes of a machine share. `start` is taken before a call and `end` after it, so
whatever the call did to the database happened in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# To release is to give back untried: the delivery does not count.
Verb = Literal["ack", "nack", "release", "terminate", "extend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A publish returned: the message is durable."""

    stream: str
    seq: int
    key: str | None
    start: float
    end: float
    priority: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A publish for later returned: the message, which has this name in its headers, will be in the stream."""

    stream: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One message of a received batch."""

    ack_id: str
    seq: int
    key: str | None
    partition: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A receive returned messages, in this order, leased for `ack_wait` seconds from a moment between `start` and `end`."""

    call: str
    worker: str
    stream: str
    consumer: str
    ack_wait: float
    start: float
    end: float
    deliveries: tuple[Delivered, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """A call about deliveries begins. Unless its end is recorded too, it may take effect at any time from now on, or never.

    Attributes:
        ack_wait: For how long an extend leases them.
    """

    call: str
    worker: str
    stream: str
    consumer: str
    verb: Verb
    ack_ids: tuple[str, ...]
    ack_wait: float | None
    start: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The call returned: so many deliveries were counted. 0 as well when the call failed and nothing was done."""

    call: str
    count: int
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The connection was lost during a call, so nobody knows what it did."""

    call: str
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A sweep returned."""

    stream: str
    count: int
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """Postgres ran until `start`, at least, and was gone by `end`. What it had not flushed is undone."""

    start: float
    end: float


Event = Published | Scheduled | Received | Settling | Settled | Lost | Swept | Crashed
EVENTS: tuple[type[Event], ...] = (Published, Scheduled, Received, Settling, Settled, Lost, Swept, Crashed)
