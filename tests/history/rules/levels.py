"""Whether urgent messages went first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from postbus.model.partitioning import priority_of
from tests.history.history import History, Lease
from tests.history.violation import Violation

# A receive waits this long for others that look at urgent messages, and then goes on without them.
_PATIENCE = 0.1


def check_levels(history: History, *, by_key: bool) -> Iterator[Violation]:
    """An urgent message never waits behind a lower one that was claimed after it was visible.

    Looks at first deliveries of urgent messages: what failed waits for its time. A message whose key may have been in flight
    waits for that, and one that a worker may have had who was killed before it told is left out.
    """
    visible = _visible_at(history)
    first: dict[int, Lease] = {}
    by_call: dict[str, list[Lease]] = defaultdict(list)
    for lease in history.leases:
        first.setdefault(lease.seq, lease)
        by_call[lease.call].append(lease)
    busy = _busy(history, first)
    urgent = sorted(
        ((visible[each.seq], each.seq, each.priority) for each in history.publishes if each.seq in first),
        reverse=True,
    )
    pending: dict[int, int] = {}
    for leases in sorted(by_call.values(), key=lambda each: each[0].start):
        start, end = leases[0].start, leases[0].end
        while urgent and urgent[-1][0] < start:
            _, seq, priority = urgent.pop()
            pending[seq] = priority
        for seq in [seq for seq in pending if first[seq].start <= start]:
            del pending[seq]
        if end - start >= _PATIENCE:
            continue
        level = max(priority_of(lease.partition) for lease in leases)
        for seq, priority in pending.items():
            key = first[seq].key
            if priority <= level or first[seq].start <= end or first[seq].attempt > 1:
                continue
            if by_key and key is not None and any(since <= end and until >= start for since, until in busy[key]):
                continue
            yield Violation(
                "urgent first",
                seq,
                f"of priority {priority} was visible at {visible[seq]:.3f}, and behind {leases[0]} of priority {level}; "
                f"it came as {first[seq]}",
            )


def _visible_at(history: History) -> dict[int, float]:
    """When a message was certainly below the horizon: all who published while it was published had ended."""
    by_start = sorted(history.publishes, key=lambda each: each.start)
    latest = list(accumulate((each.end for each in by_start), max))
    found: dict[int, float] = {}
    place = 0
    for each in sorted(history.publishes, key=lambda each: each.end):
        while place < len(by_start) and by_start[place].start < each.end:
            place += 1
        found[each.seq] = latest[place - 1]
    return found


def _busy(history: History, first: dict[int, Lease]) -> dict[str | None, list[tuple[float, float]]]:
    """When a message of a key may have been in flight, or have failed and held its key."""
    seqs = {lease.ack_id: lease.seq for lease in history.leases}
    finished: dict[int, float] = {}
    for call in history.settlements:
        if call.verb in ("ack", "terminate") and call.counted_all and call.end is not None:
            for ack_id in call.ack_ids:
                if ack_id in seqs:
                    seq = seqs[ack_id]
                    finished[seq] = min(finished.get(seq, call.end), call.end)
    found: dict[str | None, list[tuple[float, float]]] = defaultdict(list)
    for seq, lease in first.items():
        # One that nobody told of began before.
        since = lease.start if lease.attempt == 1 else 0.0
        found[lease.key].append((since, finished.get(seq, float("inf"))))
    return found
