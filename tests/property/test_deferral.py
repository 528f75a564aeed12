"""Random deferrals, failures, acks and redrives against a model of what each message's next delivery must show."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

import postbus
from postbus import Message

pytestmark = pytest.mark.newest_server
MAX_DELIVER = 3


@dataclass
class Expected:
    """What the next delivery of a message shows."""

    attempt: int = 1
    deferrals: int = 0
    state: Any = None
    is_dead: bool = False
    is_done: bool = False


@pytest.mark.parametrize("order", ["none", "key", "partition"])
@pytest.mark.parametrize("seed", range(4))
def test_each_delivery_shows_what_was_saved_last(url: str, name: str, order: Any, seed: int) -> None:
    chance = random.Random(seed)
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=2)
        consumer = bus.create_consumer(name, "c", order=order, max_deliver=MAX_DELIVER)
        seqs = bus.publish_many(name, [Message(key=chance.choice("abc"), data=n) for n in range(12)])
        model = {int(seq): Expected() for seq in seqs}
        for _ in range(400):
            if all(each.is_done for each in model.values()):
                break
            batch = consumer.receive(chance.randint(1, 5), wait=0.2)
            if not batch:
                dead = [seq for seq, each in model.items() if each.is_dead]
                assert {letter.seq: letter.saved_state for letter in consumer.dead_letters()} == {
                    seq: model[seq].state for seq in dead
                }
                assert consumer.redrive(seqs=dead) == len(dead)
                for seq in dead:
                    model[seq].is_dead, model[seq].attempt = False, 1
                continue
            settle(consumer, batch[0], model[batch[0].seq], chance)
            # Those behind it may have been returned with it: their settling counts or not, and only then changes the model.
            for delivery in batch[1:]:
                settle(consumer, delivery, model[delivery.seq], chance)
        assert all(each.is_done for each in model.values())
        assert consumer.stats().backlog == 0


def settle(consumer: postbus.Consumer, delivery: postbus.Delivery, expected: Expected, chance: random.Random) -> None:
    assert (delivery.attempt, delivery.deferrals, delivery.state) == (
        expected.attempt,
        expected.deferrals,
        expected.state,
    )
    how = chance.choices(["ack", "defer", "keep", "clear", "nack", "terminate"], [4, 4, 2, 1, 2, 1])[0]
    if how == "ack":
        expected.is_done |= bool(consumer.ack(delivery))
    elif how == "nack":
        if consumer.nack(delivery, delay=0):
            expected.is_dead = expected.attempt >= MAX_DELIVER
            expected.attempt += 1
    elif how == "terminate":
        expected.is_dead |= bool(consumer.terminate(delivery))
    else:
        state = chance.choice([1, "text", {"page": 2}, b"\x00", None])
        changes: dict[str, dict[str, Any]] = {"defer": {"state": state}, "keep": {}, "clear": {"state": None}}
        options = changes[how]
        if consumer.defer(delivery, **options):
            expected.deferrals += 1
            expected.state = options.get("state", expected.state)
