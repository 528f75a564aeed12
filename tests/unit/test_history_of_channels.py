"""The checker of histories finds channels over their limits and turns that were skipped, and nothing else."""

from __future__ import annotations

from tests.history import Channels, History, check_channels
from tests.history.events import Crashed, Delivered, Event, Received, Settled, Settling

CHANNELS = Channels(of=lambda key: key.partition(".")[0], max_concurrency={"a": 2}, rates={"slow": (10, 2)})


def got(seq: int, *, at: float, channel: str = "a", attempt: int = 1, took: float = 0.01) -> Received:
    delivered = Delivered(ack_id=f"w@{at}-{seq}", seq=seq, key=f"{channel}.{seq}", partition=0, attempt=attempt)
    return Received(
        call=f"w@{at}-{seq}",
        worker="w",
        stream="orders",
        consumer="billing",
        ack_wait=10,
        start=at,
        end=at + took,
        deliveries=(delivered,),
    )


def acked(received: Received, *, at: float) -> tuple[Event, ...]:
    call = f"ack@{at}"
    ids = tuple(each.ack_id for each in received.deliveries)
    return (
        Settling(
            call=call, worker="w", stream="orders", consumer="billing", verb="ack", ack_ids=ids, ack_wait=None, start=at
        ),
        Settled(call=call, end=at + 0.01, count=len(ids)),
    )


def found(*events: Event) -> list[tuple[str, int | None]]:
    history = History.of(events, "orders", "billing")
    return [(each.promise, each.seq) for each in check_channels(history, CHANNELS)]


def test_three_messages_leased_at_once_are_one_too_many() -> None:
    assert found(got(1, at=1), got(2, at=2), got(3, at=3)) == [("channel over limit", 3)]
    assert found(got(1, at=1), got(2, at=2), got(3, at=3, channel="b")) == []


def test_one_that_was_acked_or_has_run_out_frees_its_slot() -> None:
    first = got(1, at=1)
    assert found(first, got(2, at=2), *acked(first, at=2.5), got(3, at=2.6)) == []
    assert found(first, got(2, at=2), *acked(first, at=4), got(3, at=3)) == [("channel over limit", 3)]
    assert found(first, got(2, at=2), got(3, at=11.5)) == []


def test_a_crash_frees_no_slot() -> None:
    assert found(got(1, at=1), got(2, at=2), Crashed(start=2.5, end=2.6), got(3, at=3)) == [("channel over limit", 3)]


def test_more_than_the_rate_and_the_burst_in_any_time_is_too_many() -> None:
    within = [got(n, at=1 + max(0, n - 2) * 0.1, channel="slow") for n in range(1, 8)]
    assert found(*within) == []
    beyond = [got(n, at=1 + max(0, n - 2) * 0.05, channel="slow", took=0.001) for n in range(1, 8)]
    assert found(*beyond)[0][0] == "channel over limit"


def test_a_message_that_comes_after_a_later_one_of_its_channel_was_skipped() -> None:
    assert found(got(2, at=1, channel="b"), got(1, at=2, channel="b")) == [("turn skipped", 1)]
    assert found(got(2, at=1, channel="b"), got(1, at=2, channel="c")) == []
    # Delivered before, to somebody who could not say so.
    assert found(got(2, at=1, channel="b"), got(1, at=2, channel="b", attempt=2)) == []
    # Nobody knows which was first.
    assert found(got(2, at=1, channel="b", took=2), got(1, at=2, channel="b")) == []


def test_after_a_crash_an_earlier_message_may_come_again() -> None:
    assert found(got(2, at=1, channel="b"), Crashed(start=1.5, end=1.6), got(1, at=2, channel="b")) == []
