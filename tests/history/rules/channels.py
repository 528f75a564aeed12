"""Whether channels kept their limits, and whether each was served in its order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.history.history import History, Lease
from tests.history.rules.leases import grouped
from tests.history.violation import Violation


@dataclass(frozen=True, slots=True)
class Channels:
    """What channels a history has.

    Attributes:
        of: The channel of a key.
        max_concurrency: How many messages of a channel may be leased; of those that are not named, any number.
        rates: How many messages a channel gets per second, and how many at once.
    """

    of: Callable[[str], str]
    max_concurrency: Mapping[str, int]
    rates: Mapping[str, tuple[float, int]]


def check_channels(history: History, channels: Channels) -> Iterator[Violation]:
    by_channel = grouped(history.leases, lambda lease: channels.of(lease.key or ""))
    for name, leases in by_channel.items():
        yield from _over_limit(str(name), leases, channels.max_concurrency.get(str(name)))
        yield from _over_rate(str(name), leases, channels.rates.get(str(name)))
        yield from _skipped(history, leases)


def _over_limit(name: str, leases: list[Lease], most: int | None) -> Iterator[Violation]:
    """No more messages of a channel are leased at any moment. No crash undoes such a lease: its claim was flushed."""
    if most is None:
        return
    changes: list[tuple[float, int, Lease]] = []
    for lease in leases:
        until = min(lease.held_until, lease.leased_until)
        if lease.end < until:
            changes += [(lease.end, 1, lease), (until, -1, lease)]
    held: dict[str, Lease] = {}
    # At the same moment, what ends goes first.
    for _, change, lease in sorted(changes, key=lambda each: each[:2]):
        if change < 0:
            held.pop(f"{lease.call}/{lease.ack_id}", None)
            continue
        held[f"{lease.call}/{lease.ack_id}"] = lease
        if len(held) > most:
            yield Violation("channel over limit", lease.seq, f"is one of {len(held)} leased of {name}: {lease}")


def _over_rate(name: str, leases: list[Lease], rate: tuple[float, int] | None) -> Iterator[Violation]:
    """In any time a channel gets no more than its rate and its burst."""
    if rate is None:
        return
    per_second, burst = rate
    for place, first in enumerate(leases):
        ends = sorted(each.end for each in leases[place:])
        for count, end in enumerate(ends, start=1):
            if count > burst + per_second * max(0.0, end - first.start) + 1e-6:
                yield Violation(
                    "channel over limit", first.seq, f"is the first of {count} of {name} in {end - first.start:.3f} s"
                )
                break


def _skipped(history: History, leases: list[Lease]) -> Iterator[Violation]:
    """First deliveries of a channel come in the order of their seqs: nothing that waits for its turn is passed over."""
    firsts: dict[int, Lease] = {}
    for lease in leases:
        firsts.setdefault(lease.seq, lease)
    tried = [each for each in firsts.values() if each.attempt == 1]
    later: dict[int, Lease] = defaultdict()
    for lease in sorted(tried, key=lambda each: -each.seq):
        for other in later.values():
            if other.end < lease.start and not history.may_be_undone(other, lease.end):
                yield Violation("turn skipped", lease.seq, f"comes as {lease} after message {other.seq} as {other}")
                break
        later[lease.seq] = lease
