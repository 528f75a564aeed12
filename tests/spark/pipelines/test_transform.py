"""Streams become a stream: each message once in the result, in the order of its key."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pyspark.sql.streaming.listener import StreamingQueryProgress

import postbus
from postbus.pipelines import Transformed, TransformOptions, transform_streams
from postbus.pipelines.runtime.queries import Follower
from tests.spark.test_read import publish
from tests.waiting import until


def transform(spark: Any, url: str, stream: str, into: str, folder: Path, **options: Any) -> int:
    chosen = TransformOptions(stream=stream, into=into, checkpoint=str(folder), **options)
    return transform_streams(url, chosen, spark=spark).read


def test_sql_filters_and_rekeys_and_each_message_comes_once(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    sql = f"select concat('n.', data.n % 3) as key, data, headers from `{stream}` where data.n % 2 = 0"
    for first in (0, 50):
        publish(bus, stream, 50, first)
        assert transform(spark, url, stream, target, tmp_path, sql=sql, data_schema="n INT", batch=30) == 50

    found = sorted((message.data["n"], message.key) for message in bus.scan(target))

    assert found == [(n, f"n.{n % 3}") for n in range(0, 100, 2)]
    assert bus.consumer(stream, f"transform-{target}").stats().lag_estimate == 0
    (known,) = [each for each in bus.list_pipelines() if each.stream == stream]
    assert (known.state, known.message_count, known.lag_estimate) == ("done", 100, 0)


def test_every_message_that_was_read_is_accounted_for(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(f"{name}-bad")
    options = TransformOptions(
        stream=stream,
        into=target,
        sql=f"select key, data from `{stream}` where data.n < 6",
        data_schema="n INT",
        bad_into=f"{name}-bad",
        checkpoint=str(tmp_path),
    )
    publish(bus, stream, 10)
    bus.publish_many(stream, [postbus.Message(key="k", data={"n": "many"})] * 3)

    done = transform_streams(url, options, spark=spark)

    assert done == Transformed(read=13, published=6, aside=3, late=0, filtered=4)
    assert (known(bus, stream).message_count, known(bus, stream).aside_count) == (13, 3)
    bus.publish_many(stream, [postbus.Message(key="k", data={"n": "many"})] * 2)
    with pytest.raises(postbus.Conflict, match="2 of 2 rows could not be published, and --max-bad allows 50%"):
        transform_streams(url, replace(options, max_bad="50%"), spark=spark)
    assert (known(bus, stream).state, known(bus, stream).aside_count) == ("failed", 5)


def known(bus: postbus.Bus, stream: str) -> postbus.PipelineInfo:
    (found,) = [each for each in bus.list_pipelines() if each.stream == stream]
    return found


def test_rows_that_a_watermark_drops_are_counted(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    windows = (
        f"select date_format(window.start, 'HH') as key, count(*) as n from `{stream}` group by window(at, '1 minute')"
    )
    options = TransformOptions(
        stream=stream,
        into=target,
        sql=windows,
        batch=2,
        data_schema="n INT, at TIMESTAMP",
        watermark=("data.at 1 minute",),
        checkpoint=str(tmp_path),
    )
    for hour in (9, 12, 12, 10, 11):
        moment = datetime(2026, 1, 1, hour, tzinfo=UTC).isoformat()
        bus.publish_many(stream, [postbus.Message(key="k", data={"n": n, "at": moment}) for n in range(2)])

    done = transform_streams(url, options, spark=spark)

    # Those of a window are counted together.
    assert (done.read, done.late, done.filtered) == (10, 2, None)
    assert known(bus, stream).late_count == 2


def test_a_run_over_spark_connect_counts_what_it_read(url: str) -> None:
    source: dict[str, Any] = {
        "description": "",
        "startOffset": None,
        "endOffset": None,
        "latestOffset": None,
        "metrics": {},
    }
    rates = {"numInputRows": 7, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0}
    progress = StreamingQueryProgress.fromJson(
        {
            "id": str(uuid.uuid4()),
            "runId": str(uuid.uuid4()),
            "name": None,
            "timestamp": "",
            "batchId": 0,
            "batchDuration": 1,
            "stateOperators": [],
            "sources": [{**source, **rates}],
            "sink": {"description": "", "numOutputRows": 7},
        }
    )
    assert progress["numInputRows"] is None
    noted: list[int] = []
    run = SimpleNamespace(url=url, done=0, note=lambda count, *_, **__: noted.append(count))

    Follower(run, (), "c")._note(SimpleNamespace(recentProgress=[progress]))  # type: ignore[arg-type]

    assert noted == [7]


def order_of(bus: postbus.Bus, stream: str) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for message in bus.scan(stream):
        found.setdefault(message.key, []).append(message.data["n"])
    return found


def test_messages_of_a_key_stay_in_order_also_where_spark_mixes_them(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(f"{name}-distinct", partitions=3)
    publish(bus, stream, 400)
    expected = {f"k.{key}": list(range(key, 400, 7)) for key in range(7)}

    transform(spark, url, stream, target, tmp_path, sql=f"select key, data from `{stream}`", batch=210)
    sql = f"select key, data, seq from (select distinct key, data, seq from `{stream}`)"
    transform(spark, url, stream, f"{name}-distinct", tmp_path, sql=sql, output_mode="update", batch=210)

    assert order_of(bus, target) == expected
    assert order_of(bus, f"{name}-distinct") == expected


def test_a_bad_message_stops_the_transform_unless_there_is_a_side_stream(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(f"{name}-bad")
    publish(bus, stream, 3)
    seq = bus.publish(stream, key="k.bad", data={"n": "many"}, headers={"trace": "x"})
    publish(bus, stream, 3, 3)
    options = {"sql": f"select key, data from `{stream}` where data.n >= 0", "data_schema": "n INT"}

    with pytest.raises(postbus.Unavailable, match=f"message {seq} does not fit the schema") as caught:
        transform(spark, url, stream, target, tmp_path, **options)
    assert "\n" not in caught.value.message
    assert list(bus.scan(target)) == []
    for _ in range(2):
        transform(spark, url, stream, target, tmp_path, **options, bad_into=f"{name}-bad")

    assert sorted(message.data["n"] for message in bus.scan(target)) == list(range(6))
    (aside,) = bus.scan(f"{name}-bad")
    assert (aside.key, aside.data) == ("k.bad", {"n": "many"})
    assert aside.headers is not None
    assert (aside.headers["trace"], aside.headers["postbus-seq"]) == ("x", str(seq))


def test_a_lost_checkpoint_is_reported_and_nothing_is_published_twice(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    sql = f"select key, data from `{stream}`"
    publish(bus, stream, 5)
    transform(spark, url, stream, target, tmp_path / "a", sql=sql)
    (tmp_path / "a").rename(tmp_path / "b")

    with pytest.raises(postbus.Conflict, match=r"the checkpoint .* is gone") as caught:
        transform(spark, url, stream, target, tmp_path / "a", sql=sql)
    assert "--again" in str(caught.value.hint)
    publish(bus, stream, 2, 5)
    assert transform(spark, url, stream, target, tmp_path / "b", sql=sql) == 2
    assert len(list(bus.scan(target))) == 7
    shutil.rmtree(tmp_path / "b")
    assert transform(spark, url, stream, target, tmp_path / "b", sql=sql, again=True) == 7
    assert len(list(bus.scan(target))) == 14


@pytest.mark.slow
def test_a_function_joins_two_streams_within_a_watermark(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "pay.py").write_text(
        "from pyspark.sql import functions as F\n"
        "SUFFIX = '!'\n"
        "def shout(text):\n    return text + SUFFIX\n"
        "def paid(orders, payments):\n"
        "    shouted = F.udf(shout)\n"
        "    both = orders.alias('o').join(payments.alias('p'), F.expr('o.key = p.key and p.published_at >= "
        "o.published_at and p.published_at <= o.published_at + interval 1 hour'))\n"
        "    return both.select('o.key', F.col('o.data.n').alias('n'), shouted('o.key').alias('word'))\n"
    )
    bus.create_stream(f"{name}-payments")
    publish(bus, stream, 6)
    publish(bus, f"{name}-payments", 3)

    transform(
        spark,
        url,
        stream,
        target,
        tmp_path / "c",
        function=f"{tmp_path / 'pay.py'}:paid",
        also=(f"{name}-payments",),
        data_schema="n INT",
        watermark=("published_at 10 minutes",),
    )

    found = {message.key: message.data for message in bus.scan(target)}
    assert found == {f"k.{n}": {"n": n, "word": f"k.{n}!"} for n in range(3)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sql": "select key, data from ordrs"}, "`ordrs` cannot be found"),
        ({"sql": "selec key"}, "Syntax error"),
        ({"sql": "select key, data, 1 as x from `{stream}`"}, "a message has no column x"),
        ({"sql": "select 'a' as key, 'b' as data"}, "does not depend on any of the streams"),
        ({"sql": "select key, count(*) as n from `{stream}` group by key"}, "Spark refuses the transform"),
        (
            {
                "sql": "select count(*) as n from `{stream}` group by window(data.at, '1 hour')",
                "watermark": ("data.at 1 hour",),
                "data_schema": "at TIMESTAMP",
            },
            "Spark refuses the transform",
        ),
        ({"function": "no_such_module:x"}, "cannot be loaded"),
        ({"function": "json:no_such"}, 'no function "no_such" in json'),
        ({"function": "nothing"}, "names no function"),
        ({"function": "nothing.py:x"}, "there is no file nothing.py"),
        ({}, "a query, a function or a pipeline"),
        ({"sql": "x", "watermark": ("soon",)}, "is not a watermark"),
        ({"sql": "x", "bad_into": "bad"}, "without a schema every message fits"),
    ],
)
def test_invalid_transforms_are_one_line_errors(
    spark: Any, url: str, stream: str, target: str, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    if "sql" in options:
        options = {**options, "sql": options["sql"].format(stream=stream)}
    with pytest.raises(postbus.InvalidInput) as caught:
        transform(spark, url, stream, target, tmp_path, **options)

    assert said in caught.value.message
    assert "\n" not in caught.value.message
    if "watermark" in options and said.startswith("Spark"):
        assert "write window(at, …), not window(data.at, …)" in str(caught.value.hint)


def test_a_continuous_pipeline_follows_until_a_signal_and_continues_later(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    from postbus.pipelines import MaterializeOptions, materialize_stream

    options = TransformOptions(
        stream=stream, into=target, sql=f"select key, data from `{stream}`", checkpoint=str(tmp_path), every=0.1
    )
    publish(bus, stream, 3)

    def noted(own: postbus.Bus) -> list[int]:
        return [each.message_count for each in own.list_pipelines() if each.stream == stream]

    def watch() -> None:
        with postbus.connect(url) as own:
            until(lambda: len(list(own.scan(target))) == 3, "what was there is transformed", seconds=120)
            publish(own, stream, 2, 3)
            until(lambda: len(list(own.scan(target))) == 5, "what came is transformed", seconds=120)
            # Spark tells of a batch a little after it is published.
            until(lambda: noted(own) == [5], "it is noted", seconds=120)
            os.kill(os.getpid(), signal.SIGTERM)

    with watching(watch):
        assert transform_streams(url, options, spark=spark, continuous=True).read == 5
    state = {each.name: each.state for each in bus.list_pipelines() if each.stream == stream}
    assert set(state.values()) == {"stopped"}
    assert transform_streams(url, options, spark=spark).read == 0

    def watch_table() -> None:
        def count() -> int:
            with psycopg.connect(url) as connection:
                found = connection.execute("select to_regclass(%s)", (f'"{target}"',)).fetchall()
                if found[0][0] is None:
                    return 0
                return len(connection.execute(sql.SQL("select from {}").format(sql.Identifier(target))).fetchall())

        with postbus.connect(url) as own:
            until(lambda: count() == 5, "what was there is in the table", seconds=120)
            publish(own, stream, 2, 5)
            until(lambda: count() == 7, "what came is in the table", seconds=120)
            os.kill(os.getpid(), signal.SIGINT)

    kept = MaterializeOptions(stream=stream, table=target, schema="n INT", every=0.1)
    with watching(watch_table):
        assert materialize_stream(url, kept, spark=spark, continuous=True).read == 7
    assert bus.consumer(stream, f"materialize-{target}").stats().lag_estimate == 0


@contextmanager
def watching(watch: Callable[[], None]) -> Iterator[None]:
    """What watches sends the signal; when it fails, the pipeline ends all the same."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            watch()
        except BaseException as error:
            failures.append(error)
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    assert failures == []
