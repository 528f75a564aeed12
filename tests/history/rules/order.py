"""Whether messages came in the order that was promised within a scope: a partition, or a key."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from itertools import pairwise

from postbus.model.partitioning import priority_of
from tests.history.history import History, Lease
from tests.history.rules.leases import check_apart, grouped
from tests.history.violation import Violation

Scope = Callable[[Lease], Hashable]
"""What a delivery is ordered with; None for one that has no order."""


def by_partition(lease: Lease) -> Hashable:
    return lease.partition


def by_key(lease: Lease) -> Hashable:
    return lease.key


def by_key_and_level(lease: Lease) -> Hashable:
    """Messages of a key in one level."""
    return None if lease.key is None else (lease.key, priority_of(lease.partition))


def check_order(history: History, scope: Scope, max_deliver: int | None = None) -> Iterator[Violation]:
    """Within a scope one receive holds messages at a time, and a message comes only after all before it were finished.

    So once a message was delivered, an earlier one comes again only if it was before it in the same batch: they failed together.
    A message whose last delivery has run out is a dead letter, and those after it go on; a late ack finishes the dead letter.
    """
    last = max_deliver or float("inf")
    leases = [
        replace(each, held_until=min(each.held_until, each.leased_until)) if each.attempt >= last else each
        for each in history.leases
    ]
    yield from check_apart(replace(history, leases=leases), scope, "in order")
    yield from _check_batches(history, scope)
    yield from _check_steps(history, scope)


def _check_batches(history: History, scope: Scope) -> Iterator[Violation]:
    def batch(lease: Lease) -> Hashable:
        return None if scope(lease) is None else (lease.call, scope(lease))

    for leases in grouped(history.leases, batch).values():
        for first, second in pairwise(leases):
            if second.seq <= first.seq:
                yield Violation("in order", second.seq, f"comes after message {first.seq} in the batch {first.call}")


def _check_steps(history: History, scope: Scope) -> Iterator[Violation]:
    places: dict[str, dict[int, int]] = defaultdict(dict)
    for lease in history.leases:
        places[lease.call][lease.seq] = lease.place

    def failed_together(early: Lease, late: Lease) -> bool:
        return places[late.call].get(early.seq, late.place) < late.place

    for leases in grouped(history.leases, scope).values():
        returned = sorted(leases, key=lambda lease: lease.end)
        before: list[Lease] = []  # Those that had been delivered when the one at hand was asked for, by seq.
        count = 0
        for lease in leases:
            while returned[count].end < lease.start:
                insort(before, returned[count], key=lambda each: each.seq)
                count += 1
            for late in before[bisect_right(before, lease.seq, key=lambda each: each.seq) :]:
                if not failed_together(lease, late) and not history.may_be_undone(late, lease.end):
                    yield Violation(
                        "in order", lease.seq, f"is delivered as {lease} after message {late.seq} as {late}"
                    )
