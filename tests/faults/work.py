"""A process that receives, and does with a batch whatever a worker may do, until it is told to stop."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import postbus
from tests.faults.connecting import connect
from tests.faults.stopping import Stopping
from tests.history import RecordedConsumer, Recorder

SHORTEST_LEASE, LONGEST_LEASE = 0.3, 1.0
# What the sessions of workers are called in pg_stat_activity.
SESSION_NAME = "worker"


def work(url: str, stream: str, consumer: str, directory: Path, name: str, seed: int) -> None:
    stopping = Stopping()
    os.environ["PGAPPNAME"] = SESSION_NAME
    chance = random.Random(seed)
    # With two connections, one of them flushes what a loop has acked by the other.
    with Recorder(directory, name) as recorder, connect(url, pool_size=chance.choice((1, 2))) as bus:
        worker = Worker(RecordedConsumer(bus.consumer(stream, consumer), recorder), chance)
        while not stopping:
            try:
                worker.step()
            except postbus.Unavailable:
                time.sleep(0.005)


class Worker:
    """Receives a batch and acks all of it, some of it, gives it back, buries some, holds it longer, or does nothing. Or loops."""

    def __init__(self, consumer: RecordedConsumer, chance: random.Random) -> None:
        self._consumer = consumer
        self._chance = chance
        self._riding: list[postbus.Delivery] = []

    def step(self) -> None:
        ack_wait = self._chance.uniform(SHORTEST_LEASE, LONGEST_LEASE)
        if not self._riding and self._chance.random() < 0.1:
            self._loop(ack_wait)
            return
        riding, self._riding = self._riding, []
        batch = self._consumer.receive(self._chance.randint(1, 8), ack_wait=ack_wait, wait=0.1, ack=riding)
        if not batch:
            return
        doing = self._chance.choices(
            (self._ack, self._ack_with_the_next, self._do_parts, self._nack, self._extend, self._be_late, self._forget),
            weights=(10, 6, 6, 3, 1, 1, 1),
        )[0]
        doing(list(batch))

    def _loop(self, ack_wait: float) -> None:
        """Some messages of some batches are settled by themselves. Ends when there is nothing, or is left."""
        for batch in self._consumer.batches(self._chance.randint(1, 8), ack_wait=ack_wait, wait=0.1):
            turn = self._chance.random()
            if turn < 0.1:
                break
            if turn < 0.3:
                self._do_parts(list(batch)[:2])

    def _ack(self, batch: list[postbus.Delivery]) -> None:
        """Twice if the first time nobody knows whether it was heard, and sometimes anyway."""
        try:
            self._consumer.ack(batch)
        except postbus.ConnectionLost:
            self._consumer.ack(batch)
        if self._chance.random() < 0.2:
            self._consumer.ack(batch)

    def _ack_with_the_next(self, batch: list[postbus.Delivery]) -> None:
        self._riding = batch

    def _do_parts(self, batch: list[postbus.Delivery]) -> None:
        """The rest of it expires."""
        self._chance.shuffle(batch)
        for delivery in batch:
            doing = self._chance.choice((self._consumer.ack, self._consumer.ack, self._consumer.nack, None))
            if self._chance.random() < 0.1:
                doing = self._consumer.terminate
            if doing is not None:
                doing([delivery])

    def _nack(self, batch: list[postbus.Delivery]) -> None:
        self._consumer.nack(batch, delay=self._chance.choice((None, 0, 0.1)))

    def _extend(self, batch: list[postbus.Delivery]) -> None:
        some = self._chance.sample(batch, self._chance.randint(1, len(batch)))
        self._consumer.extend(some, ack_wait=LONGEST_LEASE)
        time.sleep(self._chance.uniform(0, SHORTEST_LEASE))
        self._consumer.ack(batch)

    def _be_late(self, batch: list[postbus.Delivery]) -> None:
        """The ack comes when the lease is about to end, or has ended."""
        time.sleep(self._chance.uniform(SHORTEST_LEASE, LONGEST_LEASE))
        self._consumer.ack(batch)

    def _forget(self, batch: list[postbus.Delivery]) -> None:
        pass
