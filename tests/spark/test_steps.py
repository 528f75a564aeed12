"""A slice is read in steps of seqs, each of them partition by partition."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import psycopg
import pytest

import postbus
from postbus.db import arrow, session
from postbus.db.arrow import MessageFilter, Range, read_batches
from postbus.spark.slices import LogRange, state_of

_COLUMNS = ("seq", "partition", "key")
_COUNT = 60


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_STEP_PER_PARTITION", 1)


def publish(bus: postbus.Bus, stream: str, first: int) -> list[postbus.Seq]:
    return bus.publish_many(stream, [postbus.Message(key=f"k.{n % 11}", data=n) for n in range(first, first + _COUNT)])


def read(
    url: str, stream: str, *, low: int, high: int, by_seq: bool = False, **narrowed: Any
) -> tuple[Range, list[dict[str, Any]]]:
    """The rows between two seqs, and the range that was read for them."""
    with session.transaction(url) as database:
        state = state_of(database, stream)
        (part,) = LogRange.load(database, state, low, high).slices(low, high, messages=MessageFilter(), **narrowed)
    batches = read_batches(url, state.system, part.range, _COLUMNS, part.messages, by_seq=by_seq)
    return part.range, [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize("by_seq", [False, True])
def test_steps_leave_nothing_out_and_keep_the_order(bus: postbus.Bus, url: str, stream: str, by_seq: bool) -> None:
    kept = publish(bus, stream, 0)
    bus.alter_stream(stream, partitions=6)
    kept += publish(bus, stream, _COUNT)
    low, high = kept[3], kept[-5]

    wanted, rows = read(url, stream, low=low, high=high, by_seq=by_seq)

    assert len(wanted.segments) == 2
    assert sorted(row["seq"] for row in rows) == [seq for seq in kept if low < seq <= high]
    for partition in {row["partition"] for row in rows}:
        assert all(a < b for a, b in pairwise(row["seq"] for row in rows if row["partition"] == partition))
    if by_seq:
        assert all(a["seq"] < b["seq"] for a, b in pairwise(rows))


@pytest.mark.usefixtures("short_steps")
def test_partitions_that_start_later_do_so_in_every_step(bus: postbus.Bus, url: str, stream: str) -> None:
    high = publish(bus, stream, 0)[-1]
    _, every = read(url, stream, low=0, high=high)
    partition, middle = every[0]["partition"], high // 2

    _, rows = read(url, stream, low=0, high=high, ahead=((partition, middle),))

    assert rows == [row for row in every if row["partition"] != partition or row["seq"] > middle]
    assert len(rows) < len(every)


def test_each_step_goes_through_the_index(bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 0)
    wanted, _ = read(url, stream, low=0, high=_COUNT)
    statement = arrow._statement(wanted, _COLUMNS, (), by_seq=False)

    with psycopg.connect(url) as database:
        database.execute(arrow._CHECK.replace("$1", "%s"), (state_system(url, stream),))
        (plan,) = database.execute(f"explain (format json) {statement}".encode()).fetchone() or ()

    kinds = {node["Node Type"] for node in _nodes(plan[0]["Plan"])}
    assert kinds <= {"Nested Loop", "Function Scan", "Append", "Index Scan", "Index Only Scan", "Subquery Scan"}, (
        json.dumps(plan, indent=1)
    )


def state_system(url: str, stream: str) -> str:
    with session.transaction(url) as database:
        return state_of(database, stream).system


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", ()) for node in _nodes(child))]
