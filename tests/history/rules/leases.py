"""Whether a lease kept others away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from itertools import combinations

from tests.history.history import History, Lease
from tests.history.violation import Promise, Violation


def check_one_worker_at_a_time(history: History) -> Iterator[Violation]:
    """A message is with one worker at a time."""
    yield from check_apart(history, lambda lease: lease.seq, "one worker at a time")


def check_keys_apart(history: History) -> Iterator[Violation]:
    """No two receives hold messages of a key at once, whatever their levels, as long as the leases last."""
    leases = [replace(each, held_until=min(each.held_until, each.leased_until)) for each in history.leases]
    yield from check_apart(replace(history, leases=leases), lambda lease: lease.key, "in order")


def check_apart(history: History, scope: Callable[[Lease], Hashable], promise: Promise) -> Iterator[Violation]:
    """No two receives hold something of the same scope at once. A scope of None is not looked at."""
    for leases in grouped(history.leases, scope).values():
        for place, first in enumerate(leases):
            for second in leases[place + 1 :]:
                if second.start >= first.held_until:
                    break
                if second.call != first.call and _surely_overlap(history, first, second):
                    yield Violation(promise, second.seq, f"is held as {second} beside message {first.seq} as {first}")


def check_attempts(history: History) -> Iterator[Violation]:
    """Each delivery of a message has a higher attempt than the one before."""
    for leases in grouped(history.leases, lambda lease: lease.seq).values():
        for first, second in combinations(leases, 2):
            wrong = second.attempt <= first.attempt if first.end < second.start else second.attempt == first.attempt
            # Of two that overlap, either may have come first.
            overlap = first.end >= second.start
            taken_back = first.may_be_taken_back or (overlap and second.may_be_taken_back)
            if taken_back and second.attempt >= first.attempt:
                continue
            if wrong and not history.may_be_undone(first, second.end) and not history.may_be_undone(second, first.end):
                yield Violation("attempts are counted", second.seq, f"is delivered as {second} after {first}")


def grouped(leases: list[Lease], scope: Callable[[Lease], Hashable]) -> dict[Hashable, list[Lease]]:
    """Leases by scope, each scope's in their order."""
    groups: dict[Hashable, list[Lease]] = defaultdict(list)
    for lease in leases:
        if (group := scope(lease)) is not None:
            groups[group].append(lease)
    return groups


def _surely_overlap(history: History, first: Lease, second: Lease) -> bool:
    """Whether neither can have begun after the other's end, whichever was first."""
    return not (_may_follow(history, first, second) or _may_follow(history, second, first))


def _may_follow(history: History, first: Lease, second: Lease) -> bool:
    if second.end < first.start:
        return False
    return second.end >= first.held_until or history.may_be_undone(first, second.end)
