"""What a worker holds, and which of it starts next."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from postbus.model.consumer import Ordering
from postbus.model.delivery import Batch, Delivery
from postbus.model.partitioning import lane_of
from postbus.worker.inbox import Inbox


def inbox(order: Ordering = "none", *, concurrency: int = 1, has_levels: bool = False) -> Inbox:
    return Inbox(
        order, concurrency=concurrency, prefetch=None, ack_wait=60, handler_timeout=None, has_levels=has_levels
    )


def batch(*messages: tuple[int, int], lease: str = "a" * 16) -> Batch:
    """Of messages, each with its seq and priority; all have keys of their own."""
    return Batch(
        tuple(
            Delivery(f"{lease}-{seq}", 1, seq, lane_of(priority), f"k{seq}", None, None, datetime.now(UTC))
            for seq, priority in messages
        )
    )


def started(held: Inbox) -> list[int]:
    """In which order it starts what it holds, one after the other."""
    found = []
    while (task := held.start_next()) is not None:
        found.append(task.delivery.seq)
        held.finish(task)
        held.queue_ack(task)
    return found


@pytest.mark.parametrize("order", ["none", "key"])
def test_what_is_more_urgent_starts_first_and_each_level_in_its_order(order: Ordering) -> None:
    held = inbox(order)
    held.add(batch((1, 4), (2, 4), (3, 0)), time.monotonic())
    held.add(batch((4, 9), (5, 4), (6, 9), lease="b" * 16), time.monotonic())
    assert started(held) == [4, 6, 1, 2, 5, 3]


def test_it_prefetches_nothing_once_it_has_seen_another_priority() -> None:
    held = inbox(concurrency=2)
    held.add(batch((1, 4), (2, 4)), time.monotonic())
    assert started(held) == [1, 2]
    # Handlers are quick, so it would hold many.
    assert held.capacity() > 100
    held.add(batch((3, 9), lease="b" * 16), time.monotonic())
    assert started(held) == [3]
    assert held.capacity() == 2


def test_it_prefetches_nothing_where_there_are_levels() -> None:
    held = inbox(concurrency=3, has_levels=True)
    held.add(batch((1, 4), (2, 4)), time.monotonic())
    started(held)
    assert held.capacity() == 3
