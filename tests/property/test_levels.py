"""Random publishes, acks, failures and deferrals of messages of all levels, against a model of what a receive may give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import postbus
from postbus import Message

pytestmark = pytest.mark.newest_server


@dataclass
class Model:
    """The messages of a stream by seq, as key and priority; which are in flight, and which are done."""

    by_key: bool
    messages: dict[int, tuple[str, int]] = field(default_factory=dict)
    in_flight: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    # Those that have failed: they go on before they are fresh again.
    tried: set[int] = field(default_factory=set)

    def available(self) -> Iterator[int]:
        """What may be given now, which in order "key" is the first of each key and level that is free."""
        busy = {self.messages[seq][0] for seq in self.in_flight}
        begun: set[tuple[str, int]] = set()
        for seq, (key, priority) in sorted(self.messages.items()):
            if seq in self.done or seq in self.in_flight:
                continue
            if self.by_key:
                if key in busy or (key, priority) in begun:
                    continue
                begun.add((key, priority))
            yield seq

    def take(self, batch: list[postbus.Delivery]) -> None:
        """Check what was received, and note it."""
        available = set(self.available())
        highest = max((self.messages[seq][1] for seq in available), default=None)
        assert bool(batch) == bool(available), f"{len(batch)} received of {len(available)}"
        assert {each.priority for each in batch} <= {highest}, "of the highest level that has some"
        for each in batch:
            assert (each.key, each.priority) == self.messages[each.seq]
            assert each.seq not in self.in_flight | self.done
            if self.by_key:
                earlier = [
                    seq for seq in self.messages if self.messages[seq] == self.messages[each.seq] and seq < each.seq
                ]
                assert not [seq for seq in earlier if seq not in self.done and seq not in {d.seq for d in batch}]
        if self.by_key:
            assert {each.key for each in batch}.isdisjoint({self.messages[seq][0] for seq in self.in_flight})
        self.in_flight |= {each.seq for each in batch}


@pytest.mark.parametrize("order", ["none", "key"])
@pytest.mark.parametrize("seed", range(4))
def test_a_receive_gives_the_highest_level_that_has_something(url: str, name: str, order: Any, seed: int) -> None:
    chance = random.Random(seed)
    model = Model(by_key=order == "key")
    levels = chance.sample(range(10), chance.randint(2, 5))
    held: list[postbus.Delivery] = []
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=chance.choice([1, 3, 8]))
        consumer = bus.create_consumer(name, "c", order=order)
        for step in range(200):
            action = chance.choices(["publish", "receive", "settle", "maintain"], [4, 5, 4, 1])[0]
            if action == "publish":
                messages = [
                    Message(key=chance.choice("abcdefgh"), data=step, priority=chance.choice(levels))
                    for _ in range(chance.randint(1, 6))
                ]
                for seq, message in zip(bus.publish_many(name, messages), messages, strict=True):
                    model.messages[int(seq)] = (str(message.key), message.priority)
            elif action == "receive":
                bus.sweep(name)
                batch = list(consumer.receive(chance.randint(1, 6)))
                model.take(batch)
                held += batch
            elif action == "settle" and held:
                settle(consumer, held, model, chance)
            elif action == "maintain":
                bus.maintain(name)
        while held:
            settle(consumer, held, model, chance, how="ack")
        while any(model.available()):
            bus.sweep(name)
            batch = list(consumer.receive(50))
            model.take(batch)
            consumer.ack(batch)
            for each in batch:
                model.in_flight.discard(each.seq)
                model.done.add(each.seq)
        assert model.done == set(model.messages)
        assert consumer.stats().backlog == 0


def settle(
    consumer: postbus.Consumer,
    held: list[postbus.Delivery],
    model: Model,
    chance: random.Random,
    how: str | None = None,
) -> None:
    delivery = held.pop(chance.randrange(len(held)))
    how = how or chance.choices(["ack", "nack", "defer"], [4, 1, 1])[0]
    if how == "ack":
        if consumer.ack(delivery):
            model.done.add(delivery.seq)
    elif how == "nack":
        consumer.nack(delivery, delay=0)
    else:
        consumer.defer(delivery, state=1)
    model.in_flight.discard(delivery.seq)
    if model.by_key and how != "ack":
        # The later messages of its key in the same lease come back with it.
        lease = delivery.ack_id.partition("-")[0]
        for other in list(held):
            if other.ack_id.partition("-")[0] == lease and other.key == delivery.key and other.seq > delivery.seq:
                held.remove(other)
                model.in_flight.discard(other.seq)
