"""The checker of histories finds what certainly went wrong, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history import History, Recorder, Remainder, Scope, by_key, by_partition, check, read
from tests.history.events import Crashed, Delivered, Event, Lost, Published, Received, Settled, Settling, Swept, Verb
from tests.history.recorder import path_of


def published(seq: int, *, at: float = 0) -> Published:
    return Published(stream="orders", seq=seq, key=f"k{seq % 2}", start=at, end=at + 0.01)


def received(
    worker: str, *seqs: int, at: float, to: float | None = None, attempt: int = 1, ack_wait: float = 1
) -> Received:
    """Of two keys and one partition. The ack id of message 7 received by a at 3 is a@3-7."""
    return Received(
        call=f"{worker}@{at}",
        worker=worker,
        stream="orders",
        consumer="billing",
        ack_wait=ack_wait,
        start=at,
        end=at + 0.01 if to is None else to,
        deliveries=tuple(
            Delivered(ack_id=f"{worker}@{at}-{seq}", seq=seq, key=f"k{seq % 2}", partition=0, attempt=attempt)
            for seq in seqs
        ),
    )


def settled(
    verb: Verb, *ack_ids: str, at: float, count: int | None = None, ack_wait: float | None = None
) -> list[Event]:
    """All are counted unless told otherwise."""
    call = f"{verb}@{at}"
    end = Settled(call=call, count=len(ack_ids) if count is None else count, end=at + 0.01)
    return [*settling(verb, *ack_ids, at=at, ack_wait=ack_wait), end]


def settling(verb: Verb, *ack_ids: str, at: float, ack_wait: float | None = None) -> list[Event]:
    """A call whose end nobody saw."""
    return [
        Settling(
            call=f"{verb}@{at}",
            worker="any",
            stream="orders",
            consumer="billing",
            verb=verb,
            ack_ids=ack_ids,
            ack_wait=ack_wait,
            start=at,
        )
    ]


def violations(
    *events: Event,
    stream: set[int] | None = None,
    dead: set[int] | None = None,
    left: set[int] | None = None,
    scope: Scope | None = None,
    max_deliver: int | None = None,
) -> list[tuple[str, int | None]]:
    """What the checker finds. Unless told otherwise, the stream has what was published and nothing is dead or left."""
    history = History.of(events, "orders", "billing")
    remainder = Remainder(
        stream=frozenset(history.published if stream is None else stream),
        dead=frozenset(dead or ()),
        left=frozenset(left or ()),
    )
    return [(each.promise, each.seq) for each in check(history, remainder, scope=scope, max_deliver=max_deliver)]


def crashed(at: float) -> Crashed:
    return Crashed(start=at, end=at + 0.1)


CLEAN: list[Event] = [
    *(published(seq) for seq in range(1, 7)),
    received("a", 1, 2, 3, at=1),
    *settled("ack", "a@1-1", at=1.1),
    *settled("nack", "a@1-2", at=1.2),
    *settled("extend", "a@1-3", at=1.5, ack_wait=2),
    # Late, and told so: message 2 was given back.
    *settled("ack", "a@1-2", at=1.6, count=0),
    *settled("ack", "a@1-3", at=3.3),
    received("b", 2, at=3.4, attempt=2),
    # Nobody knows whether this was heard; the lease ends, and the message comes again.
    *settling("ack", "b@3.4-2", at=3.5),
    received("c", 2, at=4.6, attempt=3),
    *settled("ack", "c@4.6-2", at=4.7),
    received("a", 4, 5, at=4.8),
    *settled("terminate", "a@4.8-4", at=4.9),
    # Nobody knows, and it was.
    *settling("ack", "a@4.8-5", at=5),
    Lost(call="ack@5", end=5.1),
]


@pytest.mark.parametrize("scope", [None, by_partition, by_key])
def test_a_history_that_kept_all_promises_passes(scope: Scope | None) -> None:
    assert violations(*CLEAN, dead={4}, left={6}, scope=scope) == []


def test_other_consumers_and_streams_are_none_of_its_business() -> None:
    events: list[Event] = [published(1), received("a", 1, at=1), *settled("ack", "a@1-1", at=1.1)]

    assert History.of(events, "orders", "other").leases == []
    assert History.of(events, "other", "billing").published == {}


class TestNothingIsLost:
    def test_a_message_never_delivered_is_missed(self) -> None:
        assert ("nothing is lost", 1) in violations(published(1))

    def test_a_message_whose_delivery_was_forgotten_is_missed(self) -> None:
        assert ("nothing is lost", 1) in violations(published(1), received("a", 1, at=1))

    def test_a_message_whose_ack_was_not_counted_is_missed(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), *settled("ack", "a@1-1", at=1.1, count=0)]

        assert ("nothing is lost", 1) in violations(*events)

    def test_a_message_that_the_stream_lacks_is_missed(self) -> None:
        assert violations(published(1), stream=set()) == [("nothing is lost", 1)]

    def test_a_message_that_was_never_published_is_noticed(self) -> None:
        assert ("nothing is lost", 1) in violations(received("a", 1, at=1), stream=set())

    def test_a_terminated_message_that_is_not_dead_is_missed(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), *settled("terminate", "a@1-1", at=1.1)]

        assert ("nothing is lost", 1) in violations(*events)

    def test_fewer_counted_acks_than_finished_messages_are_noticed(self) -> None:
        ids = ("a@1-1", "a@1-2")
        events: list[Event] = [
            published(1),
            published(2),
            received("a", 1, 2, at=1),
            *settled("ack", *ids, at=1.1, count=1),
        ]

        assert violations(*events) == [("nothing is lost", None)]
        assert violations(*events, dead={2}) == []
        assert violations(*events, left={2}) == []


class TestFinishedForGood:
    def test_an_acked_message_is_not_redelivered_even_after_a_crash(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), *settled("ack", "a@1-1", at=1.1)]

        again: list[Event] = [*events, crashed(2), received("b", 1, at=5, attempt=2)]

        assert violations(*again) == [("finished for good", 1)]
        assert ("finished for good", 1) in violations(*events, left={1})
        assert ("finished for good", 1) in violations(*events, dead={1})

    def test_a_receive_begun_before_the_ack_returned_may_have_been_first(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), received("b", 1, at=2.5, to=3.5, attempt=2)]

        assert violations(*events, *settled("ack", "b@2.5-1", at=3.6)) == []


class TestCountedOnce:
    def test_a_delivery_is_settled_once(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), *settled("ack", "a@1-1", at=1.1)]

        assert ("counted once", 1) in violations(*events, *settled("ack", "a@1-1", at=1.2))
        assert ("counted once", 1) in violations(*events, *settled("nack", "a@1-1", at=1.2))
        assert violations(*events, *settled("ack", "a@1-1", at=1.2, count=0)) == []

    def test_a_message_is_finished_once_by_all_its_deliveries(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), received("b", 1, at=2.5, attempt=2)]
        acks: list[Event] = [*settled("ack", "b@2.5-1", at=2.6), *settled("ack", "a@1-1", at=2.7)]

        assert ("counted once", 1) in violations(*events, *acks)

    def test_a_second_ack_may_count_when_the_first_ones_outcome_is_unknown(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), *settling("ack", "a@1-1", at=1.1)]

        assert violations(*events, *settled("ack", "a@1-1", at=1.5)) == []

    def test_more_counted_acks_than_finished_messages_are_noticed(self) -> None:
        ids = ("a@1-1", "a@1-2")
        events: list[Event] = [published(1), published(2), received("a", 1, 2, at=1), *settled("ack", *ids, at=1.1)]

        assert violations(*events, *settled("ack", *ids, at=1.2, count=1)) == [("counted once", None)]


class TestOneWorkerAtATime:
    HELD = ("one worker at a time", 1)

    def test_a_message_is_not_given_to_another_within_its_lease(self) -> None:
        assert self.HELD in violations(published(1), received("a", 1, at=1), received("b", 1, at=1.5, attempt=2))

    def test_a_second_receive_is_allowed_once_the_lease_may_have_ended(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1)]

        assert violations(*events, received("b", 1, at=2.1, attempt=2), left={1}) == []
        # Asked for within the lease, but perhaps given after it.
        assert violations(*events, received("b", 1, at=1.5, to=2.1, attempt=2), left={1}) == []

    def test_two_that_received_it_at_the_same_time_are_found_whoever_was_first(self) -> None:
        events: list[Event] = [
            published(1),
            received("a", 1, at=1, to=1.5),
            received("b", 1, at=1.1, to=1.4, attempt=2),
        ]

        assert violations(*events, left={1}) == [self.HELD]

    @pytest.mark.parametrize("verb", ["nack", "ack", "terminate"])
    @pytest.mark.parametrize("known", [True, False])
    def test_a_second_receive_is_allowed_once_the_worker_may_have_given_it_up(self, verb: Verb, known: bool) -> None:
        calls = settled(verb, "a@1-1", at=1.2) if known else settling(verb, "a@1-1", at=1.2)
        found = violations(published(1), received("a", 1, at=1), *calls, received("b", 1, at=1.5, attempt=2), left={1})

        assert self.HELD not in found

    def test_a_call_that_counted_nothing_gave_nothing_up(self) -> None:
        calls = settled("nack", "a@1-1", at=1.2, count=0)
        found = violations(published(1), received("a", 1, at=1), *calls, received("b", 1, at=1.5, attempt=2), left={1})

        assert found == [self.HELD]

    def test_an_extended_lease_lasts_longer(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), received("b", 1, at=2.5, attempt=2)]

        assert violations(*events, left={1}) == []
        assert violations(*events, *settling("extend", "a@1-1", at=1.9, ack_wait=5), left={1}) == []
        assert violations(*events, *settled("extend", "a@1-1", at=1.9, ack_wait=5), left={1}) == [self.HELD]

    def test_an_ack_after_the_message_went_to_another_does_not_count(self) -> None:
        events: list[Event] = [published(1), received("a", 1, at=1), received("b", 1, at=2.5, attempt=2)]

        assert violations(*events, *settled("ack", "a@1-1", at=2.7)) == [self.HELD]
        assert violations(*events, *settled("ack", "a@1-1", at=2.7, count=0), left={1}) == []


class TestCrashes:
    EVENTS: tuple[Event, ...] = (published(1), received("a", 1, at=1), received("b", 1, at=1.5))

    def test_a_crash_undoes_a_lease_that_was_not_flushed(self) -> None:
        assert violations(*self.EVENTS, left={1}) == [("one worker at a time", 1), ("attempts are counted", 1)]
        assert violations(*self.EVENTS, crashed(1.2), left={1}) == []

    def test_a_crash_does_not_undo_a_receive_that_something_durable_followed(self) -> None:
        found = violations(*self.EVENTS, published(2, at=1.1), crashed(1.2), left={1, 2})

        assert found == [("one worker at a time", 1), ("attempts are counted", 1)]

    def test_calls_that_overlap_the_crash_prove_nothing(self) -> None:
        assert violations(*self.EVENTS, published(2, at=1.005), crashed(1.2), left={1, 2}) == []
        assert violations(*self.EVENTS, published(2, at=1.195), crashed(1.2), left={1, 2}) == []

    def test_a_crash_before_or_after_explains_nothing(self) -> None:
        for at in (0.5, 1.6):
            assert ("one worker at a time", 1) in violations(*self.EVENTS, crashed(at), left={1})


def test_attempts_go_up() -> None:
    events: list[Event] = [published(1), received("a", 1, at=1, attempt=2), received("b", 1, at=3, attempt=2)]

    assert violations(*events, left={1}) == [("attempts are counted", 1)]


class TestOrder:
    """Messages of one partition; the odd ones have one key, the even ones another."""

    STREAM = tuple(published(seq) for seq in range(1, 5))
    LEFT = frozenset({1, 2, 3, 4})

    def found(self, *events: Event, scope: Scope | None) -> list[tuple[str, int | None]]:
        return violations(*self.STREAM, *events, left=set(self.LEFT), scope=scope)

    def test_one_batch_of_a_scope_at_a_time(self) -> None:
        events: list[Event] = [received("a", 1, at=1), received("b", 2, at=1.5)]

        assert self.found(*events, scope=by_partition) == [("in order", 2)]
        assert self.found(*events, scope=by_key) == []
        assert self.found(*events, scope=None) == []
        assert self.found(received("a", 1, at=1), received("b", 3, at=1.5), scope=by_key) == [("in order", 3)]

    def test_after_the_last_delivery_has_run_out_the_next_message_comes_though_a_late_ack_counts(self) -> None:
        events: list[Event] = [
            received("a", 1, at=1, attempt=3),
            received("b", 2, at=2.5),
            # The lease lasted for a second; message 1 is a dead letter by now.
            *settled("ack", "a@1-1", at=3),
        ]

        def found(max_deliver: int | None) -> list[tuple[str, int | None]]:
            return violations(*self.STREAM, *events, left={2, 3, 4}, scope=by_partition, max_deliver=max_deliver)

        assert found(3) == []
        # Otherwise it waits for its next delivery, and those after it wait too.
        assert found(4) == found(None) == [("in order", 2)]

    def test_a_batch_is_in_order(self) -> None:
        assert self.found(received("a", 2, 1, at=1), scope=by_partition) == [("in order", 1)]
        assert self.found(received("a", 2, 1, at=1), scope=by_key) == []
        assert self.found(received("a", 3, 1, at=1), scope=by_key) == [("in order", 1)]

    def test_nothing_comes_after_a_later_message(self) -> None:
        events: list[Event] = [received("a", 3, at=1), received("b", 1, at=3)]

        assert self.found(*events, scope=by_partition) == [("in order", 1)]
        assert self.found(*events, scope=by_key) == [("in order", 1)]
        assert self.found(*events, scope=None) == []

    def test_a_failed_message_holds_those_after_it(self) -> None:
        events: list[Event] = [received("a", 1, at=1), received("b", 3, at=3), received("b", 1, at=5, attempt=2)]

        assert self.found(*events, scope=by_partition) == [("in order", 1)]

    def test_messages_that_failed_together_are_redelivered(self) -> None:
        events: list[Event] = [
            received("a", 1, 3, at=1),
            received("b", 1, at=3, attempt=2),
            received("b", 3, at=5, attempt=2),
        ]

        assert self.found(*events, scope=by_partition) == []

    def test_a_crash_undoes_a_later_delivery_that_was_not_flushed(self) -> None:
        events: list[Event] = [received("a", 3, at=1), received("b", 1, at=3)]

        assert self.found(*events, crashed(2), scope=by_partition) == []
        assert self.found(*events, crashed(2), published(4, at=1.5), scope=by_partition) == [("in order", 1)]


def test_a_recorded_history_is_read_back(tmp_path: Path) -> None:
    events: list[Event] = [*CLEAN, crashed(9), Swept(stream="orders", count=1, end=9)]
    with Recorder(tmp_path, "a") as recorder:
        for event in events:
            recorder.record(event)

    assert read(tmp_path) == events


def test_a_line_that_a_killed_process_did_not_finish_is_left_out(tmp_path: Path) -> None:
    with Recorder(tmp_path, "a") as recorder:
        recorder.record(published(1))
        recorder.record(published(2))
    path = path_of(tmp_path, "a")
    path.write_text(path.read_text()[:-5])

    assert read(tmp_path) == [published(1)]


def test_two_recorders_do_not_share_a_file(tmp_path: Path) -> None:
    with Recorder(tmp_path, "a"), pytest.raises(FileExistsError):
        Recorder(tmp_path, "a")
