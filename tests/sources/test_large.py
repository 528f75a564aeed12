"""A large transaction is staged beside the stream, and published at once."""

from __future__ import annotations

from typing import Any

import pytest

from postbus.model.errors import ConnectionLost
from postbus.sources.target import Publisher
from tests.sources.reading import SourceBed
from tests.waiting import until

pytestmark = pytest.mark.newest_server


def test_a_large_transaction_is_published_at_once_and_in_order(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    counts: list[int] = []
    orders.sql.execute("insert into orders select n from generate_series(1, 25000) as n")
    orders.sql.execute("insert into orders values (0)")

    def count() -> int:
        (found,) = orders.sql.execute("select count(*) from postbus_data.log_1_1").fetchone() or (0,)
        counts.append(found)
        return int(found)

    until(lambda: count() == 25_001, "all are there")

    assert set(counts) <= {0, 25_000, 25_001}
    rows = orders.sql.execute(
        "select (data -> 'record' ->> 'id')::int from postbus_data.log_1_1 order by seq"
    ).fetchall()
    assert [number for (number,) in rows] == [*range(1, 25_001), 0]
    (left,) = orders.sql.execute("select count(*) from postbus_data.spark_staging").fetchone() or (None,)
    assert left == 0


def test_a_large_transaction_that_fails_half_way_is_published_once(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Publisher.stage
    failures: list[int] = []

    def fail_once(self: Publisher, attempt: Any, chunk: int, keys: Any, data: Any) -> None:
        stage(self, attempt, chunk, keys, data)
        if chunk == 2 and not failures:
            failures.append(chunk)
            raise ConnectionLost("the connection was lost")

    monkeypatch.setattr(Publisher, "stage", fail_once)
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders select n from generate_series(1, 22000) as n")
    orders.wait_for_rows(22_000)

    orders.sql.execute("insert into orders values (0)")
    orders.wait_for_rows(22_001)
    assert failures == [2]
    (count,) = orders.sql.execute("select count(distinct key) from postbus_data.log_1_1").fetchone() or (0,)
    assert count == len(orders.all_messages()) == 22_001
    assert orders.sql.execute("select from postbus_data.spark_staging").fetchall() == []


def test_staged_changes_that_a_crash_has_lost_are_read_again(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish_staged
    failures: list[int] = []

    def lose_once(self: Publisher, *arguments: Any) -> None:
        if not failures:
            failures.append(1)
            # As the server does with unlogged tables after a crash.
            orders.sql.execute("delete from postbus_data.spark_staging where chunk = 0")
        publish(self, *arguments)

    monkeypatch.setattr(Publisher, "publish_staged", lose_once)
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders select n from generate_series(1, 12000) as n")

    orders.wait_for_rows(12_000)
    assert len(orders.all_messages()) == 12_000
