"""What docs/how-to/stream-changes-of-tables.md shows runs, as it is printed; the copy is equal to the table."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg

import postbus
from postbus.sources.runner import SourceRunner
from tests import servers
from tests.spark.pipelines.how_to import run_how_to


def test_the_how_to_copies_a_table(spark_server: servers.Server, shared_spark: Any) -> None:
    with (
        servers.database(spark_server.url) as url,
        postbus.connect(url) as bus,
        psycopg.connect(url, autocommit=True) as sql,
    ):
        sql.execute(
            "create schema shop; create table shop.orders (id bigint primary key, item text, total numeric(10, 2))"
        )
        sql.execute("insert into shop.orders select n, 'item ' || n, n / 7.0 from generate_series(1, 500) as n")
        runner = SourceRunner(url)
        running = threading.Thread(target=runner.run)
        running.start()
        try:
            page = run_how_to("stream-changes-of-tables", url, bus=bus, time=time)
            (copied,) = page.answers
        finally:
            runner.stop()
            running.join()
            bus.sources.drop("shop")
        assert copied == sql.execute("select * from shop.orders order by id").fetchall()
    assert "shop" in page.said_by("source postgres info")[0].out
