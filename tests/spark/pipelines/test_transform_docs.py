"""The commands and examples of docs/how-to/transform-and-materialize.md run, as they are printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.pipelines import sessions
from tests import servers
from tests.cli.shell import Shell
from tests.spark.conftest import ROOT
from tests.spark.pipelines.test_materialize import of_table


def test_the_how_to_makes_streams_and_tables(
    spark: Any, spark_server: servers.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def this_spark(master: str | None, remote: str | None) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(sessions, "started", this_spark)
    page = (ROOT / "docs" / "how-to" / "transform-and-materialize.md").read_text()
    page = page.replace("/checkpoints", f"{tmp_path}/checkpoints").replace("/tables", f"{tmp_path}/tables")
    scope: dict[str, Any] = {"spark": spark}
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        for language, block in re.findall(r"```(console|python)\n(.*?)```", page, re.S):
            if language == "python":
                exec(block, scope)
                continue
            for line in block.strip().splitlines():
                _, *arguments = shlex.split(line.removeprefix("$ "))
                Shell(url)(*arguments)

        (large,) = bus.scan("large-orders")
        assert (large.key, large.data) == ("customers.ada", {"customer": "ada", "quantity": 40})
        assert [message.key for message in bus.scan("bad-orders")] == ["orders.3"]
        totals = {message.key: message.data for message in bus.scan("totals")}
        assert totals == {"ada": {"quantity": 40}, "bob": {"quantity": 2}}
        assert {key: row["cents"] for key, row in of_table(url, "prices").items()} == {"sku.7": 890, "sku.8": 100}
        versions = scope["read_snapshot"](spark, f"{tmp_path}/tables/prices").orderBy("_seq").collect()
        assert [(row["_key"], row["cents"], row["is_current"]) for row in versions] == [
            ("sku.7", 990, False),
            ("sku.8", 100, True),
            ("sku.7", 890, True),
        ]
        assert {each.state for each in bus.list_pipelines()} == {"done"}
