"""The commands and examples of docs/how-to/bring-data-in.md run, as they are printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus.pipelines import sessions
from tests import servers
from tests.cli.shell import Shell
from tests.spark.conftest import ROOT

LINES = '{"id": 1, "customer": "ada", "total": 2.5}\n{"id": 2, "customer": "no token", "total": 1.0}\n'


def test_the_how_to_brings_in_files_and_tables(
    spark: Any, spark_server: servers.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def this_spark(master: str | None, remote: str | None) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(sessions, "started", this_spark)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(LINES)
    page = (ROOT / "docs" / "how-to" / "bring-data-in.md").read_text()
    said: dict[str, list[str]] = {}
    answers = []
    with (
        servers.database(spark_server.url) as url,
        postbus.connect(url) as bus,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("create schema shop; create table shop.customers (id integer primary key, name text)")
        connection.execute("insert into shop.customers values (7, 'Ada')")
        scope: dict[str, Any] = {"spark": spark, "bus": bus}
        for language, block in re.findall(r"```(console|python|sql)\n(.*?)```", page, re.S):
            text = block.replace("/in", str(tmp_path / "in"))
            if language == "python":
                exec(text, scope)
            elif language == "sql":
                answers.append(connection.execute(text.encode()).fetchall())
            else:
                for line in text.strip().splitlines():
                    _, *arguments = shlex.split(line.removeprefix("$ "))
                    result = Shell(url).run(*arguments)
                    said.setdefault(" ".join(arguments[:3]), []).append(result.out + result.err)

        first, second, third = said["pipeline run ingest"]
        assert "messages  1\nbad       1" in first
        assert "nothing is new" in second
        assert "nothing is new" in third
        assert "which cannot be a token" in said["stream read orders-bad"][0]
        assert [(m.key, m.data["total"]) for m in bus.scan("orders")] == [("orders.ada.1", 2.5)]
        assert scope["done"].messages == 3
        assert [(m.key, m.data) for m in bus.scan("customers")] == [("customers.7", {"id": 7, "name": "Ada"})]
        files, ranges = answers
        assert [state for _, state in files] == ["done"]
        assert [row[:4] for row in ranges] == [(0, None, None, 1)]
        assert "backfill customers from shop.customers" in said["pipeline ls"][0]
