from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_a_worker_handles_what_there_is(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(key=f"k.{number % 5}", data=number) for number in range(200)])
    handled: list[int] = []

    def handle(delivery: postbus.Delivery) -> None:
        if delivery.data == 7:
            raise postbus.Reject("seven")
        if delivery.data == 8 and delivery.attempt == 1:
            raise postbus.Retry(delay=0)
        handled.append(delivery.data)

    summary = await billing.run(handle, concurrency=4, stop_when_empty=True, install_signal_handlers=False)
    summary_2 = await billing.run(handle, stop_when_empty=True, install_signal_handlers=False)

    assert sorted(handled) == [number for number in range(200) if number != 7]
    assert summary.acked_count + summary_2.acked_count == 199
    assert (summary.rejected_count, summary.failed_count) == (1, 1)
    assert [each.reason for each in await billing.dead_letters()] == ["seven"]
    assert (await billing.stats()).in_flight == 0


async def test_a_worker_that_waits_is_woken_and_keeps_its_leases(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", ack_wait=1)
    handled: list[tuple[str, int]] = []
    done = threading.Event()

    def handle(delivery: postbus.Delivery) -> None:
        if delivery.data == "slow":
            time.sleep(1.5)
        handled.append((delivery.data, delivery.attempt))
        if len(handled) == 3:
            done.set()

    worker = _worker(billing, handle)
    running = asyncio.create_task(_run(worker))
    await asyncio.sleep(0.2)
    await bus.publish(stream, key="a", data="slow")
    await bus.publish(stream, key="b", data="quick")
    await asyncio.sleep(0.2)
    await bus.publish(stream, key="c", data="later")
    assert await asyncio.to_thread(done.wait, 20)
    worker.stop()
    summary = await running

    assert handled == [("quick", 1), ("later", 1), ("slow", 1)]
    assert (summary.acked_count, summary.lost_count) == (3, 0)


def _worker(consumer: Any, handler: Any) -> Any:
    sync = getattr(consumer, "_consumer", None)
    kind: Any = postbus.AsyncWorker if sync is None else postbus.Worker
    return kind(sync or consumer, handler, concurrency=2, install_signal_handlers=False)


async def _run(worker: Any) -> postbus.WorkSummary:
    if isinstance(worker, postbus.AsyncWorker):
        return await worker.run()
    return await asyncio.to_thread(worker.run)
