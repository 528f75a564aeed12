"""What is always true of turns, whatever consumers do: each test fails without the rule that it is about."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message

TURNS = """
select t.channel, t.n, t.after_seq
from postbus_data.turn as t
join postbus_data.consumer as c on c.id = t.consumer_id
where c.stream_name = %s and c.name = 'c'
"""
POSITION = """
select p.read_to_seq, s.turned_to, s.last_turn
from postbus_data.position as p
join postbus_data.consumer as c on c.id = p.consumer_id
join postbus_data.channel_position as s on s.consumer_id = c.id
where c.stream_name = %s and c.name = 'c'
order by p.read_to_seq desc, s.n desc
limit 1
"""
# Messages that the position has passed and that are nowhere: not held, and not behind a turn of their channel.
UNCOVERED = """
select m.seq
from postbus.read(%(stream)s, max_messages => 10000) as m
join postbus_data.consumer as c on c.stream_name = %(stream)s and c.name = 'c'
cross join lateral (
    select p.read_to_seq from postbus_data.position as p where p.consumer_id = c.id order by p.read_to_seq desc limit 1
) as p
where m.seq <= p.read_to_seq
    and m.seq <> all (%(acked)s)
    and not exists (select from postbus_data.held_states(c.id, c.epoch, now()) as h where h.seq = m.seq)
    and not exists (
        select
        from postbus_data.turn as t
        where t.consumer_id = c.id and t.channel = split_part(m.key, '.', 1) and t.after_seq < m.seq
    )
"""


class Walk:
    """Random steps of a consumer, its publishers and the operator, with the invariants checked after each."""

    def __init__(self, bus: postbus.Bus, sql: psycopg.Connection[Any], stream: str, seed: int) -> None:
        self.bus, self.sql, self.stream = bus, sql, stream
        self.chance = random.Random(seed)
        self.consumer = bus.consumer(stream, "c")
        self.held: list[postbus.Delivery] = []
        self.acked: list[int] = []
        self.numbers = (0, 0)
        self.first: dict[str, int] = {}

    def step(self) -> None:
        self.chance.choice((self.publish, self.receive, self.receive, self.settle, self.settle, self.limit))()
        self.check()

    def publish(self) -> None:
        tenants = self.chance.choices("abcdefgh", weights=(40, 20, 1, 1, 1, 1, 1, 1), k=self.chance.choice((1, 5, 200)))
        self.bus.publish_many(self.stream, [Message(key=f"{tenant}.k", data=None) for tenant in tenants])

    def receive(self) -> None:
        batch = self.consumer.receive(self.chance.choice((1, 1, 2, 7, 40)))
        for each in batch:
            if each.attempt == 1:
                assert self.first.get(each.key or "", 0) < each.seq, "a channel comes in its order"
                self.first[each.key or ""] = each.seq
        self.held += batch

    def settle(self) -> None:
        self.chance.shuffle(self.held)
        some, self.held = self.held[: len(self.held) // 2 + 1], self.held[len(self.held) // 2 + 1 :]
        if self.chance.random() < 0.3:
            self.consumer.nack(some)
        else:
            assert self.consumer.ack(some) == len(some)
            self.acked += [each.seq for each in some]

    def limit(self) -> None:
        pattern = self.chance.choice(("a", "b", "c", "*"))
        self.chance.choice(
            (
                lambda: self.bus.channels.set(self.stream, pattern, max_concurrency=self.chance.randint(1, 5)),
                lambda: self.bus.channels.set(self.stream, pattern, max_rate=1000, weight=self.chance.randint(1, 3)),
                lambda: self.bus.channels.pause(self.stream, pattern),
                lambda: self.bus.channels.remove(self.stream, pattern),
            )
        )()

    def check(self) -> None:
        turns = self.sql.execute(TURNS, (self.stream,)).fetchall()
        assert len({channel for channel, _, _ in turns}) == len(turns), "a channel has one turn at most"
        position = self.sql.execute(POSITION, (self.stream,)).fetchone()
        if position is not None:
            _, turned_to, last_turn = position
            assert all(n <= last_turn for _, n, _ in turns)
            # A turn that a full receive has ended goes on with its number.
            assert (turned_to + 1, last_turn) >= self.numbers, "numbers only grow"
            self.numbers = (turned_to, last_turn)
            assert all(after_seq <= position[0] for _, _, after_seq in turns), (
                "a turn does not read beyond the position"
            )
        found = self.sql.execute(UNCOVERED, {"stream": self.stream, "acked": self.acked}).fetchall()
        assert found == [], "everything that was passed over has a turn"

    def finish(self) -> None:
        for each in self.bus.channels.list_all(self.stream):
            self.bus.channels.remove(self.stream, each.pattern)
        self.acked += [each.seq for each in self.held]
        assert self.consumer.ack(self.held) == len(self.held)
        while batch := self.consumer.receive(500, wait=0.2):
            self.acked += [each.seq for each in batch]
            self.consumer.ack(batch)
        assert sorted(self.acked) == [each.seq for each in self.bus.scan(self.stream)]
        assert self.sql.execute(TURNS, (self.stream,)).fetchall() == []


@pytest.mark.parametrize("fair", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_passed_over_has_one_turn_and_numbers_grow(
    url: str, sql: psycopg.Connection[Any], name: str, seed: int, fair: bool
) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=1, channel_tokens=1)
        bus.create_consumer(name, "c", order="none", fair=fair, backoff=(0.01,))
        walk = Walk(bus, sql, name, seed)
        for _ in range(60):
            walk.step()
        walk.finish()


async def test_turns_are_written_under_the_mutex_of_their_partition_only(bus: Any, name: str, connect: Any) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    consumer = await bus.create_consumer(name, "c", order="none", fair=True)
    await bus.channels.set(name, "*", max_concurrency=1)
    await bus.publish_many(name, [Message(key="a.1", data=n) for n in range(5)])
    await consumer.receive()
    holder, other = connect(autocommit=False), connect()
    holder.execute(
        "select pg_advisory_xact_lock(postbus_data.consumer_lock_class(c.id), 0) from postbus_data.consumer as c "
        "where c.stream_name = %s",
        (name,),
    )
    before = other.execute(TURNS, (name,)).fetchall()
    await bus.publish_many(name, [Message(key="b.1", data=n) for n in range(5)])
    assert not await consumer.receive()
    assert other.execute(TURNS, (name,)).fetchall() == before
    other.execute("set lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        other.execute("select postbus.pause_channel(%s, 'a')", (name,))
    holder.rollback()
    other.execute("select postbus.pause_channel(%s, 'a')", (name,))


async def test_a_limit_holds_across_receives_at_the_same_time(bus: Any, name: str, connect: Any) -> None:
    """A's claim is open in its transaction; B gets nothing of the channel, neither now nor when A has committed."""
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    consumer = await bus.create_consumer(name, "c", order="none")
    await bus.channels.set(name, "a", max_concurrency=2)
    await bus.publish_many(name, [Message(key="a.1", data=n) for n in range(5)])
    first = connect(autocommit=False)
    assert len(first.execute("select * from postbus.receive(%s, 'c', 10)", (name,)).fetchall()) == 2
    assert not await consumer.receive(10)
    first.commit()
    assert not await consumer.receive(10)
    first.close()


async def test_a_claim_of_a_limited_channel_waits_for_its_flush(bus: Any, name: str, connect: Any) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    await bus.create_consumer(name, "c", order="none", fair=True)
    await bus.channels.set(name, "limited", max_concurrency=1)
    for channel, expected in (("free", "off"), ("limited", "on")):
        await bus.publish(name, key=f"{channel}.1", data=1)
        connection = connect(autocommit=False)
        connection.execute("set local synchronous_commit = off")
        assert connection.execute("select count(*) from postbus.receive(%s, 'c', 10)", (name,)).fetchone() == (1,)
        assert connection.execute("show synchronous_commit").fetchone() == (expected,)
        connection.commit()


async def test_other_consumers_do_not_matter(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    for consumer in "xy":
        await bus.create_consumer(name, consumer, order="none", fair=True)
    await bus.channels.set(name, "*", max_concurrency=2)
    await bus.publish_many(name, [Message(key="a.1", data=n) for n in range(5)])
    held = await bus.consumer(name, "x").receive(10)
    assert [each.data for each in held] == [0, 1]
    assert [each.data for each in await bus.consumer(name, "y").receive(10)] == [0, 1]
    await bus.consumer(name, "x").ack(held)
    assert [each.data for each in await bus.consumer(name, "x").receive(10)] == [2, 3]
    assert not await bus.consumer(name, "y").receive(10)


async def test_a_mouse_is_passed_by_two_turns_of_a_whale_at_most(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    consumer = await bus.create_consumer(name, "c", order="none", fair=True)
    await bus.publish_many(name, [Message(key="whale.1", data=n) for n in range(9000)])
    for size in (1, 4, 20, 100):
        await consumer.ack(await consumer.receive(size))
        await bus.publish(name, key=f"mouse-{size}.1", data=0)
        turn = max(1, size // 4)
        passed = 0
        while True:
            batch = await consumer.receive(size)
            await consumer.ack(batch)
            if any(each.key.startswith("mouse") for each in batch):
                break
            passed += len(batch)
        assert passed <= 2 * turn
