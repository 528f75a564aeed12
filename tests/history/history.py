"""The history of one consumer, put together from the records of all processes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tests.history.events import Crashed, Event, Published, Received, Settled, Settling, Verb

# By how much Postgres' clock may gain on ours during a lease.
CLOCK_SLACK: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A call about deliveries.

    Attributes:
        call: Its name.
        verb: What it asked for.
        ack_ids: The deliveries.
        ack_wait: For how long an extend leases them.
        start: When it began.
        end: When it returned; None if it did not.
        count: How many deliveries it was told were counted; None if it was told nothing.
    """

    call: str
    verb: Verb
    ack_ids: tuple[str, ...]
    ack_wait: float | None
    start: float
    end: float | None
    count: int | None

    @property
    def counted_all(self) -> bool:
        return self.count == len(self.ack_ids)

    @property
    def may_have_counted(self) -> bool:
        return self.count != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One message in the hands of one worker.

    Attributes:
        place: Its place in what the call returned.
        start: When the receive began: the lease did not begin earlier.
        end: When the receive returned: the lease had begun.
        held_until: Nobody else may have it earlier, unless a crash undid the lease.
        leased_until: The same, as far as the lease went: a late ack counts, but other levels of its key need not wait for it.
        may_be_taken_back: It was given back untried, or in order "key" an earlier message of its key in the same lease failed, or
            may have: then this comes again behind it. Its delivery is not counted.
    """

    seq: int
    key: str | None
    partition: int
    attempt: int
    ack_id: str
    worker: str
    call: str
    place: int
    start: float
    end: float
    held_until: float
    leased_until: float
    may_be_taken_back: bool = False

    def __str__(self) -> str:
        return (
            f"{self.ack_id} of {self.worker} (attempt {self.attempt}, received {self.start:.3f} to {self.end:.3f}, "
            f"held until {self.held_until:.3f})"
        )


@dataclass(slots=True)
class History:
    """What happened to one consumer.

    Attributes:
        published: The key of each message whose publish returned, by seq.
        leases: Every delivery, in the order of `start`.
        settlements: Every call about deliveries.
        publishes: Every publish to the stream that returned, also of keys that the consumer does not want.
    """

    published: dict[int, str | None] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    publishes: list[Published] = field(default_factory=list)
    _crashes: list[Crashed] = field(default_factory=list)
    _flushes: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def of(
        cls, events: Iterable[Event], stream: str, consumer: str, *, by_key: bool = False, prefix: str | None = None
    ) -> History:
        """The history of a consumer among all events.

        Args:
            events: Those of all processes.
            stream: The stream.
            consumer: The consumer.
            by_key: Its order is "key".
            prefix: It wants only keys that begin with this.
        """
        events = list(events)
        published = [event for event in events if isinstance(event, Published)]
        settlements = _settlements(events)
        flushes = [(event.start, event.end) for event in published]
        flushes += [(s.start, s.end) for s, _ in settlements if s.end is not None and s.verb != "extend" and s.count]
        own = [s for s, place in settlements if place == (stream, consumer)]
        return cls(
            published={
                event.seq: event.key
                for event in published
                if event.stream == stream and (prefix is None or (event.key or "").startswith(prefix))
            },
            leases=_leases(events, own, (stream, consumer), by_key=by_key),
            settlements=own,
            publishes=[event for event in published if event.stream == stream],
            _crashes=[event for event in events if isinstance(event, Crashed)],
            _flushes=_earliest_ends(flushes),
        )

    def may_be_undone(self, lease: Lease, until: float) -> bool:
        """Whether a crash before a moment may have undone a lease: nothing is known to have flushed it before."""
        return any(
            crash.end >= lease.start and crash.start <= until and not self._was_flushed(lease.end, crash.start)
            for crash in self._crashes
        )

    def _was_flushed(self, written: float, before: float) -> bool:
        """Whether something durable was begun after one moment and returned before another: it took all before it to disk."""
        place = bisect_left(self._flushes, (written,))
        return place < len(self._flushes) and self._flushes[place][1] <= before


def _earliest_ends(flushes: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """For each start, in order, the earliest end of all that start then or later."""
    found: list[tuple[float, float]] = []
    earliest = float("inf")
    for start, end in sorted(flushes, reverse=True):
        earliest = min(earliest, end)
        found.append((start, earliest))
    return found[::-1]


def _settlements(events: Sequence[Event]) -> list[tuple[Settlement, tuple[str, str]]]:
    """All calls about deliveries, each with its stream and consumer."""
    ends = {event.call: event for event in events if isinstance(event, Settled)}
    found = []
    for event in events:
        if isinstance(event, Settling):
            end = ends.get(event.call)
            settlement = Settlement(
                call=event.call,
                verb=event.verb,
                ack_ids=event.ack_ids,
                ack_wait=event.ack_wait,
                start=event.start,
                end=None if end is None else end.end,
                count=None if end is None else end.count,
            )
            found.append((settlement, (event.stream, event.consumer)))
    return found


def _leases(
    events: Iterable[Event], settlements: Iterable[Settlement], consumer: tuple[str, str], *, by_key: bool
) -> list[Lease]:
    by_ack_id: dict[str, list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        for ack_id in settlement.ack_ids:
            by_ack_id[ack_id].append(settlement)
    leases = [
        Lease(
            seq=delivered.seq,
            key=delivered.key,
            partition=delivered.partition,
            attempt=delivered.attempt,
            ack_id=delivered.ack_id,
            worker=event.worker,
            call=event.call,
            place=place,
            start=event.start,
            end=event.end,
            held_until=_held_until(event, by_ack_id[delivered.ack_id]),
            leased_until=_leased_until(event, by_ack_id[delivered.ack_id]),
            may_be_taken_back=any(
                call.verb == "release" and call.may_have_counted for call in by_ack_id[delivered.ack_id]
            ),
        )
        for event in events
        if isinstance(event, Received) and (event.stream, event.consumer) == consumer
        for place, delivered in enumerate(event.deliveries)
    ]
    if by_key:
        together: dict[str, list[Lease]] = defaultdict(list)
        for lease in leases:
            together[lease.call].append(lease)
        leases = [_behind(lease, together[lease.call], by_ack_id) for lease in leases]
    return sorted(leases, key=lambda lease: (lease.start, lease.call, lease.place))


def _behind(lease: Lease, together: Sequence[Lease], settlements: dict[str, list[Settlement]]) -> Lease:
    """A lease, held only as long as no earlier message of its key in the same lease may have failed."""
    ends = []
    for earlier in together:
        if earlier.key == lease.key is not None and earlier.seq < lease.seq:
            calls = settlements[earlier.ack_id]
            failed = [call.start for call in calls if call.verb in ("nack", "release") and call.may_have_counted]
            is_finished = any(call.counted_all and call.verb in ("ack", "terminate") for call in calls)
            ends += failed or ([] if is_finished else [earlier.held_until])
    if not ends:
        return lease
    return replace(lease, held_until=min(lease.held_until, *ends), may_be_taken_back=True)


def _leased_until(received: Received, settlements: Sequence[Settlement]) -> float:
    """Until when a lease lasted if it was not given up."""
    extended = [
        call.start + (call.ack_wait or 0.0) for call in settlements if call.verb == "extend" and call.counted_all
    ]
    return max([received.start + received.ack_wait, *extended]) - CLOCK_SLACK


def _held_until(received: Received, settlements: Sequence[Settlement]) -> float:
    """Until when a lease certainly lasted: it had not run out, and its worker had not begun to give it up."""
    promised = [received.start + received.ack_wait - CLOCK_SLACK]
    given_up = [float("inf")]
    for settlement in settlements:
        if settlement.counted_all:
            # Only a lease that is there is counted.
            promised.append(settlement.start + max(0.0, (settlement.ack_wait or 0.0) - CLOCK_SLACK))
        if settlement.may_have_counted and settlement.verb != "extend":
            given_up.append(settlement.start)
    return min(max(promised), *given_up)
