"""What became of messages: dead letters, peek and stats."""

from __future__ import annotations

import time
from typing import Any

import pytest

import postbus
from postbus import Message


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    """A consumer with six dead letters, three for each of two reasons."""
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish_many(stream, [Message(key=f"orders.{n}", data=n, headers={"n": str(n)}) for n in range(6)])
    batch = await consumer.receive(10)
    await consumer.terminate([d for d in batch if d.data < 3], reason="timeout: 3 s")
    await consumer.terminate([d for d in batch if d.data >= 3], reason="bad data")
    return consumer


async def test_dead_letters_are_listed_with_their_story_and_in_pages(consumer: Any) -> None:
    letters = await consumer.dead_letters()
    assert [(d.data, d.key, d.headers, d.attempts) for d in letters] == [
        (n, f"orders.{n}", {"n": str(n)}, 1) for n in range(6)
    ]
    assert letters[0].reason == "timeout: 3 s"
    page = await consumer.dead_letters(after_seq=letters[2].seq, max_messages=2)
    assert [d.data for d in page] == [3, 4]


async def test_dead_letters_are_chosen_by_seq_key_and_reason(consumer: Any) -> None:
    letters = await consumer.dead_letters()
    assert [d.data for d in await consumer.dead_letters(seqs=[letters[1].seq, letters[4].seq])] == [1, 4]
    assert [d.data for d in await consumer.dead_letters(key_pattern="*.2")] == [2]
    assert [d.data for d in await consumer.dead_letters(reason_like="timeout%")] == [0, 1, 2]
    with pytest.raises(postbus.InvalidInput):
        await consumer.dead_letters(key_pattern="a..b")


async def test_redriven_messages_are_redelivered_with_attempts_from_one(consumer: Any) -> None:
    assert await consumer.redrive(reason_like="timeout%") == 3
    batch = await consumer.receive(10)
    assert sorted((d.data, d.attempt) for d in batch) == [(0, 1), (1, 1), (2, 1)]
    assert len(await consumer.dead_letters()) == 3


async def test_what_another_redrive_has_taken_is_passed_over(consumer: Any, connect: Any, stream: str) -> None:
    other = connect(autocommit=False)
    assert other.execute("select postbus.redrive(%s, 'c', max_messages => 4)", (stream,)).fetchone() == (4,)
    assert await consumer.redrive() == 2
    other.rollback()
    assert await consumer.redrive() == 4
    assert sorted([d.data for d in await consumer.receive(10)]) == [0, 1, 2, 3, 4, 5]


async def test_redriving_into_a_stream_publishes_copies(bus: Any, consumer: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-retry")
    assert await consumer.redrive(to_stream=f"{stream}-retry") == 6
    assert [(m.key, m.data) async for m in bus.scan(f"{stream}-retry")] == [(f"orders.{n}", n) for n in range(6)]
    assert await consumer.dead_letters() == []


async def test_redriving_goes_at_a_rate_and_can_be_cancelled(consumer: Any) -> None:
    started = time.monotonic()
    turns = 0
    async for count in consumer.redrive_steps(rate=10):
        turns += 1
        assert count == turns
        if turns == 4:
            break
    assert time.monotonic() - started >= 0.3
    assert len(await consumer.dead_letters()) == 2


async def test_letters_that_cannot_go_back_do_not_keep_the_others_from_it(
    bus: Any, stream: str, consumer: Any, sql: Any
) -> None:
    letters = await consumer.dead_letters()
    await bus.purge(stream, before_seq=letters[3].seq)
    ((count,),) = sql.execute("select postbus.redrive(%s, 'c', max_messages => 2)", (stream,)).fetchall()
    assert count == 2
    assert await consumer.redrive() == 1
    assert [letter.seq for letter in await consumer.dead_letters()] == [letter.seq for letter in letters[:3]]


async def test_a_purged_message_stays_a_dead_letter_and_can_go_to_a_stream(
    bus: Any, consumer: Any, stream: str
) -> None:
    await bus.purge(stream, everything=True)
    assert await consumer.redrive() == 0
    assert len(await consumer.dead_letters()) == 6
    assert await consumer.redrive(to_stream=stream) == 6


async def test_discarding_removes_what_matches(consumer: Any) -> None:
    assert await consumer.discard(reason_like="bad%") == 3
    assert await consumer.discard() == 3
    assert await consumer.discard() == 0


async def test_dead_letters_have_a_retention_of_their_own(bus: Any, consumer: Any, sql: Any, stream: str) -> None:
    await consumer.alter(retain_dead=3600)
    sql.execute(
        "update postbus_data.dead_letter set died_at = died_at - interval '2 hours' where consumer_id = %s and seq <= 2",
        ((await consumer.info()).id,),
    )
    sql.execute(
        "update postbus_data.sweep_state set full_sweep_at = '-infinity' where consumer_id = %s",
        ((await consumer.info()).id,),
    )
    await bus.sweep(stream)
    assert len(await consumer.dead_letters()) == 4


async def test_peek_shows_every_state_and_changes_none(bus: Any, stream: str, consumer: Any) -> None:
    await bus.publish_many(stream, [Message(key=f"new.{n}", data=n) for n in range(4)])
    batch = await consumer.receive(2)
    await consumer.nack(batch[0], delay=60, reason="later")
    for _ in range(2):
        seen = await consumer.peek()
        assert [p.seq for p in seen] == sorted(p.seq for p in seen)
        by_state = {
            state: [p for p in seen if p.state == state] for state in ("available", "delivered", "waiting", "dead")
        }
        assert [len(by_state[state]) for state in ("available", "delivered", "waiting", "dead")] == [2, 1, 1, 6]
    assert by_state["waiting"][0].reason == "later"
    assert by_state["delivered"][0].until is not None
    assert len(await consumer.peek(state="dead", max_messages=4)) == 4
    assert {p.key for p in await consumer.peek(key_pattern="new.*")} == {f"new.{n}" for n in range(4)}
    with pytest.raises(postbus.InvalidInput, match="state"):
        await consumer.peek(state="lost")
    assert len(await consumer.receive(10)) == 2


async def test_stats_show_how_far_a_consumer_has_come(bus: Any, stream: str, consumer: Any) -> None:
    empty = await consumer.stats()
    assert (empty.lag_estimate, empty.in_flight, empty.waiting, empty.dead) == (0, 0, 0, 6)
    assert empty.oldest_unread_at is None

    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(400)])
    batch = await consumer.receive(40)
    await consumer.nack(batch[:5], delay=60)
    await consumer.ack(batch[5])
    stats = await consumer.stats()
    assert (stats.in_flight, stats.waiting) == (34, 5)
    assert 250 <= stats.lag_estimate <= 480
    assert stats.oldest_unread_at is not None
    assert stats.oldest_in_flight_at is not None
    assert len(stats.partitions) == 4
    assert sum(p.in_flight for p in stats.partitions) == 34
