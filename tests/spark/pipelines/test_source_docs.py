"""The commands and examples of docs/how-to/bring-data-in.md run, as they are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

import postbus
from tests import servers
from tests.spark.pipelines.how_to import run_how_to

LINES = '{"id": 1, "customer": "ada", "total": 2.5}\n{"id": 2, "customer": "no token", "total": 1.0}\n'


def test_the_how_to_brings_in_files_and_tables(shared_spark: Any, spark_server: servers.Server, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(LINES)
    with (
        servers.database(spark_server.url) as url,
        postbus.connect(url) as bus,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("create schema shop; create table shop.customers (id integer primary key, name text)")
        connection.execute("insert into shop.customers values (7, 'Ada')")
        page = run_how_to("bring-data-in", url, places={"/in": tmp_path / "in"}, spark=shared_spark, bus=bus)

        first, second, third = (said.out + said.err for said in page.said_by("pipeline run ingest"))
        assert "warning: 1 of 2 rows went aside; see why: postbus stream read orders-bad" in first
        assert "there are no new files" in second
        assert "0 rows that had gone aside were published" in third
        assert "there are no new files" in third
        assert "which cannot be a token" in page.said_by("stream read orders-bad")[0].out
        assert [(m.key, m.data["total"]) for m in bus.scan("orders")] == [("orders.ada.1", 2.5)]
        assert page.scope["done"].messages == 3
        assert [(m.key, m.data) for m in bus.scan("customers")] == [("customers.7", {"id": 7, "name": "Ada"})]
        files, ranges = page.answers
        assert [state for _, state in files] == ["done"]
        assert [row[:4] for row in ranges] == [(0, None, None, 1)]
        assert "backfill customers from shop.customers" in page.said_by("pipeline ls")[0].out
