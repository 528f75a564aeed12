"""Declarative pipelines by the command: each message once, and known to Postgres as other pipelines are."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.pipelines import DeclarativeOptions, run_declarative
from tests import servers
from tests.spark.pipelines.test_faults import last_log, pipeline
from tests.spark.test_connect import EXAMPLE, run


def options(folder: Path, text: str, stream: str = "orders") -> DeclarativeOptions:
    (folder / "pipeline.yml").write_text(text)
    return DeclarativeOptions(stream=stream, pipeline=str(folder / "pipeline.yml"))


@pytest.mark.parametrize("text", ["name: [", "name: x", "", "- x", "name: x\nstorage: y\nstrage: z"])
def test_a_file_that_describes_no_pipeline_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=r"pipeline\.yml describes no pipeline") as caught:
        options(tmp_path, text).check()

    assert "\n" not in caught.value.message


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(postbus.InvalidInput, match="there is no file"):
        DeclarativeOptions(stream="orders", pipeline=str(tmp_path / "none.yml")).check()


def test_a_session_without_spark_connect_is_refused(spark: Any, url: str, stream: str, tmp_path: Path) -> None:
    with pytest.raises(postbus.InvalidInput, match="Spark Connect"):
        run_declarative(url, options(tmp_path, "name: x\nstorage: y", stream), spark=spark)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_declarative_pipeline_continues_where_it_stopped_and_shows_its_lag(
    spark_server: servers.Server, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    command = [
        sys.executable,
        "-c",
        "from postbus.cli.main import run; run()",
        "pipeline",
        "run",
        "transform",
        "orders",
    ]
    command += ["--pipeline", "example/spark-pipeline.yml", "--json"]
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        bus.create_stream("orders", partitions=1)
        bus.create_stream("large-orders", partitions=1)
        read = []
        for part in (range(15), range(15, 20)):
            orders = [postbus.Message(key=f"o.{n}", data={"customer": "c", "quantity": n}) for n in part]
            bus.publish_many("orders", orders)
            read.append(json.loads(run(command, tmp_path, POSTBUS_URL=url)))

        found = sorted(message.data["quantity"] for message in bus.scan("large-orders"))
        (known,) = bus.list_pipelines()

    assert read == [{"transformed": 15}, {"transformed": 5}]
    assert found == list(range(10, 20))
    assert (known.name, known.state, known.message_count) == ("transform orders by large-orders", "done", 20)
    assert known.lag_estimate == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_a_declarative_pipeline_that_was_killed_and_run_again_has_each_message_once(
    spark_server: servers.Server, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"declared {seed}")
    shutil.copytree(EXAMPLE, tmp_path / "example")
    arguments = ("transform", "orders", "--pipeline", "example/spark-pipeline.yml")
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        bus.create_stream("orders", partitions=4)
        bus.create_stream("large-orders", partitions=3)
        orders = [postbus.Message(key=f"o.{n % 50}", data={"customer": "c", "quantity": n}) for n in range(3000)]
        bus.publish_many("orders", orders)
        for _ in range(2):
            with pipeline(url, tmp_path, *arguments):
                time.sleep(chance.uniform(0, 12))
        with pipeline(url, tmp_path, *arguments) as process:
            assert process.wait(300) == 0, last_log(tmp_path)

        found = sorted(message.data["quantity"] for message in bus.scan("large-orders"))

    assert found == list(range(10, 3000))
