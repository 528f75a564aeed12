"""Whether every message is somewhere, and each was finished once and for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.history.history import History, Settlement
from tests.history.remainder import Remainder
from tests.history.violation import Violation

_FINISHING = ("ack", "terminate")


def check_nothing_is_lost(history: History, remainder: Remainder) -> Iterator[Violation]:
    """Each message that was published was acked, is dead or is still to come."""
    promise: Final = "nothing is lost"
    for seq in sorted(history.published.keys() - remainder.stream):
        yield Violation(promise, seq, "was published and is not in the stream")
    for seq in sorted({lease.seq for lease in history.leases} - remainder.stream):
        yield Violation(promise, seq, "was delivered and is not in the stream")
    perhaps = {seq for seq, calls in _by_seq(history, "ack").items() if any(c.may_have_counted for c in calls)}
    for seq in sorted(remainder.stream - perhaps - remainder.dead - remainder.left):
        yield Violation(promise, seq, "was not acked, is not dead and does not come any more")
    for seq, calls in sorted(_by_seq(history, "terminate").items()):
        if any(call.counted_all for call in calls) and seq not in remainder.dead:
            yield Violation(promise, seq, "was terminated and is not dead")


def check_counts(history: History, remainder: Remainder) -> Iterator[Violation]:
    """Published = acked + dead + left, as far as the acks that were lost on the way allow."""
    finished = len(remainder.stream) - len(remainder.dead | remainder.left)
    acks = [settlement for settlement in history.settlements if settlement.verb == "ack"]
    counted = sum(ack.count or 0 for ack in acks)
    unknown = sum(len(ack.ack_ids) for ack in acks if ack.count is None)
    books = f"{finished} messages were finished, {counted} were counted as acked, {unknown} acks were lost on the way"
    if counted > finished:
        yield Violation("counted once", None, books)
    if counted + unknown < finished:
        yield Violation("nothing is lost", None, books)


def check_counted_once(history: History) -> Iterator[Violation]:
    """No delivery is settled twice, no message finished twice."""
    by_delivery: dict[str, list[Settlement]] = defaultdict(list)
    for settlement in history.settlements:
        if settlement.verb != "extend" and settlement.counted_all:
            for ack_id in settlement.ack_ids:
                by_delivery[ack_id].append(settlement)
    seqs = {lease.ack_id: lease.seq for lease in history.leases}
    for ack_id, calls in by_delivery.items():
        if len(calls) > 1:
            yield Violation("counted once", seqs.get(ack_id), f"was settled twice as {ack_id}: {_names(calls)}")
    for seq, calls in sorted(_by_seq(history, *_FINISHING).items()):
        counted = [call for call in calls if call.counted_all]
        if len(counted) > 1:
            yield Violation("counted once", seq, f"was finished more than once: {_names(counted)}")


def check_finished_for_good(history: History, remainder: Remainder) -> Iterator[Violation]:
    """What was acked does not come again, not even after a crash."""
    promise: Final = "finished for good"
    finished: dict[int, float] = {}
    for seq, calls in sorted(_by_seq(history, *_FINISHING).items()):
        ends = [call.end for call in calls if call.counted_all and call.end is not None]
        if ends:
            finished[seq] = min(ends)
    for lease in history.leases:
        if lease.start > finished.get(lease.seq, float("inf")):
            yield Violation(promise, lease.seq, f"was finished at {finished[lease.seq]:.3f}, and delivered as {lease}")
    for seq in sorted(finished.keys() & remainder.left):
        yield Violation(promise, seq, "was finished and is still to come")
    for seq, calls in sorted(_by_seq(history, "ack").items()):
        if seq in remainder.dead and any(call.counted_all for call in calls):
            yield Violation(promise, seq, "was acked and is dead")


def _by_seq(history: History, *verbs: str) -> dict[int, list[Settlement]]:
    """The calls of some kinds about each message."""
    seqs = {lease.ack_id: lease.seq for lease in history.leases}
    found: dict[int, list[Settlement]] = defaultdict(list)
    for settlement in history.settlements:
        if settlement.verb in verbs:
            for ack_id in settlement.ack_ids:
                if ack_id in seqs:
                    found[seqs[ack_id]].append(settlement)
    return found


def _names(calls: list[Settlement]) -> str:
    return ", ".join(f"{call.verb} {call.call}" for call in calls)
