"""Drivers, Python workers and Postgres are killed while files and tables are published: each row comes once."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import psycopg
import pytest

import postbus
from tests import servers
from tests.spark.pipelines.test_faults import WHAT, run_and_kill
from tests.spark.test_faults import own_server

__all__ = ["own_server"]
SEEDS = range(int(os.environ.get("POSTBUS_FAULT_SEEDS", "20")))
FILES, ROWS = 30, 200
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("seed", SEEDS)
def test_files_whose_ingestion_is_killed_are_published_once(
    own_server: servers.Server, tmp_path: Path, seed: int
) -> None:
    what, chance = WHAT[seed % len(WHAT)], random.Random(f"ingest {seed}")
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(FILES):
        rows = [{"id": file * ROWS + n, "customer": f"c{n % 7}" if n else "no token"} for n in range(ROWS)]
        (folder / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("ingest", "target", "--files", str(folder), "--key", "o.{customer}.{id}", "--batch", "3")
    with servers.database(own_server.url) as url, postbus.connect(url) as bus:
        bus.create_stream("target", partitions=3)
        run_and_kill(url, tmp_path, what, own_server, chance, *arguments)

        found = sorted(message.data["id"] for message in bus.scan("target"))
        assert found == [n for n in range(FILES * ROWS) if n % ROWS]
        aside = sorted(json.loads(message.data["row"])["id"] for message in bus.scan("target-bad"))
        assert aside == list(range(0, FILES * ROWS, ROWS))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_whose_backfill_is_killed_is_published_once(
    own_server: servers.Server, tmp_path: Path, seed: int
) -> None:
    what, chance = WHAT[seed % len(WHAT)], random.Random(f"backfill {seed}")
    with servers.database(own_server.url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table source (id integer, part text, note text, primary key (part, id))")
            connection.execute(
                "insert into source select i, case i % 500 when 0 then 'no token' else 'p' || i % 7 end, md5(i::text)"
                " from generate_series(1, 60000) as i"
            )
        with postbus.connect(url) as bus:
            bus.create_stream("target", partitions=3)
        arguments = ("backfill", "target", "--table", "source", "--batch", "500")
        run_and_kill(url, tmp_path, what, own_server, chance, *arguments)
        with psycopg.connect(url) as connection, postbus.connect(url) as bus:
            rows = [row for (row,) in connection.execute("select row_to_json(s) from source as s order by s.id")]
            published = [message.data for message in bus.scan("target")]
            aside = [json.loads(message.data["row"]) for message in bus.scan("target-bad")]
            assert (len(published), len(aside)) == (60000 - 120, 120)
            assert sorted([*published, *aside], key=lambda row: int(row["id"])) == rows
            ranges = (
                "select sum(message_count)::integer, sum(bad_count)::integer, count(*) filter (where snapshot is null)"
            )
            name = ("backfill target from source",)
            found = connection.execute(f"{ranges} from postbus.backfill_ranges(%s)", name).fetchall()
            assert found == [(60000 - 120, 120, 0)]
