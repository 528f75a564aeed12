"""A message as a consumer receives it, and the batches in which it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload

from postbus.model.partitioning import priority_of


# Not frozen: making a frozen one takes seven times as long, and a worker makes one for each message.
@dataclass(slots=True)
class Delivery:
    """One delivery of a message to one worker.

    Attributes:
        ack_id: Names this delivery: what is acked, nacked, extended or terminated.
        attempt: Which delivery of it this is, counted from 1.
        seq: The message's number in the stream.
        partition: The partition that it lies in.
        key: Its key, or None.
        data: Its data, as it was published.
        headers: Its headers, or None.
        published_at: When it was published.
        is_last_attempt: The consumer's `max_deliver` allows no further one: if it fails, the message becomes a dead letter.
        deferrals: How often the message was deferred.
        state: What was saved with it when it was deferred, a JSON value or bytes; None if nothing was.
    """

    ack_id: str
    attempt: int
    seq: int
    partition: int
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    published_at: datetime
    is_last_attempt: bool = False
    deferrals: int = 0
    state: Any = None

    @property
    def priority(self) -> int:
        """The priority it was published with."""
        return priority_of(self.partition)


@dataclass(frozen=True, slots=True)
class Batch(Sequence[Delivery]):
    """What one receive returned, in order within each partition. Empty when there was nothing.

    Attributes:
        deliveries: The deliveries.
        acked_count: How many deliveries were finished by the ack that rode on this receive.
        leases: The ack ids of its leases: with them a batch is settled as a whole, however many messages it has.
    """

    deliveries: tuple[Delivery, ...]
    acked_count: int = 0
    leases: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Delivery: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Delivery, ...]: ...

    def __getitem__(self, index: int | slice) -> Delivery | tuple[Delivery, ...]:
        return self.deliveries[index]

    def __len__(self) -> int:
        return len(self.deliveries)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self.deliveries)


Deliveries = Batch | Delivery | str | Iterable[Delivery | str]
"""What can be acked: a batch, a delivery, an ack id, or several of these."""


def ack_ids(deliveries: Deliveries) -> list[str]:
    """The ack ids of what is to be settled."""
    if isinstance(deliveries, Batch):
        return list(deliveries.leases)
    if isinstance(deliveries, Delivery):
        return [deliveries.ack_id]
    if isinstance(deliveries, str):
        return [deliveries]
    return [each if isinstance(each, str) else each.ack_id for each in deliveries]
