"""A consumer that writes down what it is asked and what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import postbus
from postbus.model.delivery import Deliveries, ack_ids
from tests.history.events import Delivered, Lost, Received, Settled, Settling, Verb
from tests.history.recorder import Recorder


class RecordedConsumer:
    """Passes calls to a consumer and records those about deliveries. Lets all errors through. A `postbus.Worker` may have one."""

    def __init__(self, consumer: postbus.Consumer, recorder: Recorder) -> None:
        self._consumer = consumer
        self._recorder = recorder
        # A worker acks a whole lease by its name.
        self._named: dict[str, list[str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def receive(
        self, max_messages: int, *, ack_wait: float, wait: float = 0, ack: Deliveries | None = None
    ) -> postbus.Batch:
        """As a consumer's. The ack, if any, rides on it."""
        call = self._begin("ack", ack) if ack else self._recorder.new_call()
        start = time.monotonic()
        with self._whose_loss_is_recorded(call):
            batch = self._consumer.receive(max_messages, ack=ack or None, ack_wait=ack_wait, wait=wait)
        end = time.monotonic()
        if ack:
            self._recorder.record(Settled(call=call, count=batch.acked_count, end=end))
        self._record_batch(call, batch, ack_wait, start, end)
        return batch

    def batches(self, max_messages: int, *, ack_wait: float, wait: float) -> Iterator[postbus.Batch]:
        """As a consumer's. An ack counts for certain when the next one has; how many of the last did, it does not tell."""
        loop = self._consumer.batches(max_messages, ack_wait=ack_wait, wait=wait)
        in_hand: postbus.Batch | None = None
        open_calls: list[tuple[str, int]] = []
        try:
            while True:
                done, in_hand = in_hand, None
                call = self._begin("ack", done) if done else self._recorder.new_call()
                start = time.monotonic()
                with self._whose_loss_is_recorded(call):
                    batch = next(loop, None)
                end = time.monotonic()
                for known, count in open_calls:
                    self._recorder.record(Settled(call=known, count=count, end=end))
                open_calls.clear()
                if batch is None:
                    if done:
                        self._recorder.record(Lost(call=call, end=end))
                    return
                if done:
                    open_calls.append((call, batch.acked_count))
                self._record_batch(call, batch, ack_wait, start, end)
                in_hand = batch
                yield batch
        finally:
            if in_hand:
                call = self._begin("nack", in_hand)
                loop.close()
                open_calls.append((call, 0))
            for known, _ in open_calls:
                self._recorder.record(Lost(call=known, end=time.monotonic()))

    def _record_batch(self, call: str, batch: postbus.Batch, ack_wait: float, start: float, end: float) -> None:
        if not batch:
            return
        for delivery in batch:
            self._named.setdefault(delivery.ack_id.partition("-")[0], []).append(delivery.ack_id)
        self._recorder.record(
            Received(
                call=call,
                worker=self._recorder.name,
                stream=self._consumer.stream,
                consumer=self._consumer.name,
                ack_wait=ack_wait,
                start=start,
                end=end,
                deliveries=tuple(_delivered(delivery) for delivery in batch),
            )
        )

    def ack(self, deliveries: Deliveries) -> int:
        with self._settling("ack", deliveries) as counts:
            counts.append(self._consumer.ack(deliveries))
        return counts[0]

    def nack(self, deliveries: Deliveries, **options: Any) -> int:
        with self._settling("release" if options.get("untried") else "nack", deliveries) as counts:
            counts.append(self._consumer.nack(deliveries, **options))
        return counts[0]

    def terminate(self, deliveries: Deliveries, **options: Any) -> int:
        with self._settling("terminate", deliveries) as counts:
            counts.append(self._consumer.terminate(deliveries, **options))
        return counts[0]

    def extend(self, deliveries: Deliveries, *, ack_wait: float) -> int:
        with self._settling("extend", deliveries, ack_wait) as counts:
            counts.append(self._consumer.extend(deliveries, ack_wait=ack_wait))
        return counts[0]

    @contextmanager
    def _settling(self, verb: Verb, deliveries: Deliveries, ack_wait: float | None = None) -> Iterator[list[int]]:
        call = self._begin(verb, deliveries, ack_wait)
        counts: list[int] = []
        with self._whose_loss_is_recorded(call):
            yield counts
        self._recorder.record(Settled(call=call, count=counts[0], end=time.monotonic()))

    def _begin(self, verb: Verb, deliveries: Deliveries, ack_wait: float | None = None) -> str:
        call = self._recorder.new_call()
        named = dict.fromkeys(name for given in ack_ids(deliveries) for name in self._named.get(given, [given]))
        self._recorder.record(
            Settling(
                call=call,
                worker=self._recorder.name,
                stream=self._consumer.stream,
                consumer=self._consumer.name,
                verb=verb,
                ack_ids=tuple(named),
                ack_wait=ack_wait,
                start=time.monotonic(),
            )
        )
        return call

    @contextmanager
    def _whose_loss_is_recorded(self, call: str) -> Iterator[None]:
        try:
            yield
        except postbus.ConnectionLost:
            self._recorder.record(Lost(call=call, end=time.monotonic()))
            raise
        except postbus.Unavailable:
            self._recorder.record(Settled(call=call, count=0, end=time.monotonic()))
            raise


def _delivered(delivery: postbus.Delivery) -> Delivered:
    return Delivered(
        ack_id=delivery.ack_id,
        seq=delivery.seq,
        key=delivery.key,
        partition=delivery.partition,
        attempt=delivery.attempt,
    )
