"""Transforms and tables are killed at random points and run again: the target is what a loop over the log makes of it."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.pipelines import MaterializeOptions, materialize_stream, read_snapshot
from tests import servers
from tests.spark.pipelines.test_faults import WHAT, run_and_kill, small_disk
from tests.spark.pipelines.test_materialize import expected, materialize, of_files, of_table, rows_of
from tests.spark.pipelines.test_transform import order_of
from tests.spark.test_faults import own_server

__all__ = ["own_server"]
SEEDS = range(int(os.environ.get("POSTBUS_FAULT_SEEDS", "12")))
MESSAGES = 3000
SQL = "select key, data from source where data.n % 2 = 0"


def fill(url: str, seed: int) -> None:
    chance = random.Random(seed)
    with postbus.connect(url) as bus:
        bus.create_stream("source", partitions=4)
        bus.create_stream("target", partitions=3)
        bus.create_stream("bad", partitions=1)
        messages = [postbus.Message(key=f"k.{n % 50}", data={"n": n}) for n in range(MESSAGES)]
        for place in range(0, MESSAGES, 100):
            messages[place] = postbus.Message(key=f"k.{place % 50}", data={"n": "bad", "place": place})
        bus.publish_many("source", messages)
        bus.create_stream("changes", partitions=4)
        changes = [
            postbus.Message(
                key=f"k.{chance.randrange(90)}",
                data={"action": chance.choice(("insert", "update", "update", "delete")), "record": {"n": n}},
            )
            for n in range(MESSAGES)
        ]
        bus.publish_many("changes", changes)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_transform_that_is_run_again_publishes_exactly_its_result(
    spark: Any, own_server: servers.Server, tmp_path: Path, seed: int
) -> None:
    what, chance = WHAT[seed % len(WHAT)], random.Random(f"transform {seed}")
    kind = ("transform", "table", "files")[(seed // len(WHAT)) % 3]
    with servers.database(own_server.url) as url:
        fill(url, seed)
        if kind == "transform":
            options = ("--data-schema", "n INT", "--bad-into", "bad", "--batch", "300", "--sql", SQL)
            checkpoint = ("--checkpoint", str(tmp_path / "checkpoint"))
            command = ("transform", "source", "--into", "target", *options, *checkpoint)
            run_and_kill(url, tmp_path, what, own_server, chance, *command)
            with postbus.connect(url) as bus:
                found = order_of(bus, "target")
                aside = sorted(message.data["place"] for message in bus.scan("bad"))
            good = [n for n in range(0, MESSAGES, 2) if n % 100]
            assert found == {f"k.{key}": [n for n in good if n % 50 == key] for key in range(0, 50, 2)}
            assert aside == list(range(0, MESSAGES, 100))
            return
        place = ("--table", "now") if kind == "table" else ("--to", str(tmp_path / "now"))
        history = ("--table", "then") if kind == "table" else ("--to", str(tmp_path / "then"))
        shared = ("materialize", "changes", "--changes", "--batch", "300")
        run_and_kill(url, tmp_path, what, own_server, chance, *shared, *place)
        run_and_kill(url, tmp_path, what, own_server, chance, *shared, *history, "--history")
        with postbus.connect(url) as bus:
            now, versions = expected(bus, "changes")
        if kind == "table":
            rows = of_table(url, "now")
            held = rows_of(url, 'select * from "then"')
        else:
            rows = of_files(spark, tmp_path / "now", "changes")
            held = [row.asDict() for row in read_snapshot(spark, f"{tmp_path}/then/changes").collect()]
        assert {key: row["n"] for key, row in rows.items()} == now
        assert sorted((row["_key"], row["n"]) for row in held) == sorted(version[:2] for version in versions)
        assert {row["_key"]: row["n"] for row in held if row["is_current"]} == now


def test_a_step_that_dies_before_it_counts_is_taken_again_once(
    spark: Any, bus: postbus.Bus, url: str, stream: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postbus.pipelines.materialize.to_files import Files
    from postbus.pipelines.materialize.to_table import Table

    bus.create_stream(f"{name}-bad")
    bus.publish(stream, key="a", data={"n": 1})
    bus.publish(stream, key="b", data={"n": "bad"})

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for target in ({"table": stream}, {"to": str(tmp_path)}):
        options = {"schema": "n INT", "bad_into": f"{name}-bad", **target}
        with monkeypatch.context() as patch:
            for kind in (Table, Files):
                patch.setattr(kind, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                materialize(spark, url, stream, **options)
        bus.publish(stream, key="a", data={"n": len(list(bus.scan(stream)))})
        materialize(spark, url, stream, **options)

    assert of_table(url, stream)["a"]["n"] == 2
    assert of_files(spark, tmp_path, stream)["a"]["n"] == 3
    assert len(list((tmp_path / stream).glob("snapshot-*"))) == 1
    assert [message.key for message in bus.scan(f"{name}-bad")] == ["b", "b"]


@pytest.mark.slow
def test_a_full_disk_stops_the_files_which_continue_when_there_is_room(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    noise = random.Random(1)
    rows = [postbus.Message(key=f"k.{n}", data={"x": noise.randbytes(1000).hex()}) for n in range(1000)]
    bus.publish_many(stream, rows)
    options = MaterializeOptions(stream=stream, to=str(tmp_path / "disk"), schema="x STRING")
    with small_disk(tmp_path / "disk", "500k"):
        with pytest.raises(postbus.Unavailable, match="No space left"):
            materialize_stream(url, options, spark=spark)
        subprocess.run(["mount", "-o", "remount,size=100m", str(tmp_path / "disk")], check=True)
        assert materialize_stream(url, options, spark=spark).read == 1000
        assert len(of_files(spark, tmp_path / "disk", stream)) == 1000
