"""A report counts what was published and what became of it, whatever lies in the log, the archive and the histories."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.pipelines import Report, ReportOptions, report_streams
from postbus.pipelines.runtime.progress import Silence
from tests import servers
from tests.cli.shell import Shell
from tests.spark.pipelines.how_to import run_how_to
from tests.spark.pipelines.test_archive import to_lake
from tests.spark.test_read import publish


def report_on(spark: Any, url: str, *streams: str, **options: Any) -> Report:
    chosen = ReportOptions(**{"streams": streams, "out": None, "bucket": 1.0, **options})
    found = report_streams(url, chosen, spark=spark)
    assert found is not None
    return found


def test_messages_are_counted_by_time_and_by_key(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 70)
    time.sleep(1.1)
    bus.publish_many(stream, [postbus.Message(key="k.0", data="x" * 98) for _ in range(30)])
    bus.publish(stream, data=1)

    (found,) = report_on(spark, url, stream, top=1).streams

    assert found.buckets is not None
    assert sum(found.traffic.messages) == 101
    assert len([count for count in found.traffic.messages if count]) >= 2
    assert found.traffic.messages[-1] == 31
    assert found.traffic.bytes[-1] == 3001
    assert found.traffic.key_count == 7
    assert [(key.key, key.messages) for key in found.traffic.keys] == [("k.0", 40)]
    assert found.consumers == ()


def test_deliveries_are_timed_and_counted_by_what_became_of_them(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    publish(bus, stream, 40)
    bus.create_consumer(stream, "forgetful")
    billing = bus.create_consumer(stream, "billing", keep_history=3600, backoff=[0], order="none")
    time.sleep(1.2)
    first = billing.receive(max_messages=40)
    billing.ack(first[10:])
    billing.terminate(first[:2], reason="order 17 is broken")
    billing.nack(first[2:10], reason="timeout after 30 s")
    again: list[postbus.Delivery] = []
    while len(again) < 8:
        again += billing.receive(max_messages=8, wait=5)
    time.sleep(1.2)
    billing.ack(again)
    publish(bus, stream, 5)

    (found,) = report_on(spark, url, stream).streams

    consumer = {each.name: each for each in found.consumers}
    assert consumer["forgetful"].deliveries is None
    done = consumer["billing"].deliveries
    assert done is not None
    assert (sum(done.acked), sum(done.failed), sum(done.dead), sum(done.redelivered)) == (38, 8, 2, 8)
    assert done.latency.p50 is not None
    assert done.latency.p99 is not None
    assert done.slowest is not None
    assert 1.1 < done.latency.p50 < 2.3 < done.latency.p99 <= done.slowest * 1.03
    assert done.waited is not None
    assert done.worked is not None
    assert done.waited + done.worked > 1.2
    # 40 wait at first, at the end the 5 that came last; nobody has received them.
    assert max(done.lag) == 40
    assert done.lag[-1] == 5
    assert [(each.reason, each.count) for each in done.failures] == [
        ("timeout after # s", 8),
        ("order # is broken", 2),
    ]
    assert [(each.consumer, each.reason, each.count) for each in found.dead] == [("billing", "order # is broken", 2)]


def test_messages_only_in_the_archive_are_in_the_report(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, max_messages=5)
    billing = bus.create_consumer(name, "billing", keep_history=3600, order="none")
    publish(bus, name, 20)
    billing.ack(billing.receive(max_messages=20))
    to_lake(spark, url, name, tmp_path)
    bus.maintain(name)

    (whole,) = report_on(spark, url, name).streams
    (live,) = report_on(spark, url, name, archive=False).streams

    assert (sum(whole.traffic.messages), sum(whole.traffic.in_log), whole.archived) == (20, 5, 20)
    assert sum(whole.traffic.bytes) == sum(len(json.dumps({"n": n}).replace(" ", "")) for n in range(20))
    done = next(each.deliveries for each in whole.consumers if each.name == "billing")
    assert done is not None
    assert (sum(done.acked), done.unknown) == (20, 0)
    assert (sum(live.traffic.messages), live.archived) == (5, None)
    done = next(each.deliveries for each in live.consumers if each.name == "billing")
    assert done is not None
    assert (sum(done.acked), done.unknown) == (20, 15)


def test_a_time_bounds_the_report(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 10)
    time.sleep(0.5)
    (middle,) = {each.published_at for each in bus.read(stream, max_messages=1)}
    publish(bus, stream, 5)
    assert middle is not None
    last = next(iter(bus.read(stream, max_messages=1, backwards=True))).published_at
    assert last is not None

    (late,) = report_on(spark, url, stream, start=last.isoformat()).streams
    (early,) = report_on(spark, url, stream, end=last.isoformat()).streams
    (none,) = report_on(spark, url, stream, end="1d").streams

    assert (sum(late.traffic.messages), sum(early.traffic.messages)) == (5, 10)
    assert (none.buckets, none.traffic.messages, none.traffic.keys) == (None, (), ())


def test_the_command_writes_a_page_and_tables(
    shared_spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    shell = Shell(url)
    bus.publish(stream, key="<b&quot;onclick=alert(1)", data={})
    consumer = bus.create_consumer(stream, "billing", keep_history=60)
    consumer.terminate(consumer.receive(), reason="<script>alert(1)</script>")
    page = tmp_path / "page.html"

    def run(*arguments: str) -> Any:
        return shell.objects("pipeline", "run", "report", *arguments)

    (said,) = run(stream, target, "--out", str(page), "--tables", str(tmp_path / "tables"), "--format", "json")

    assert (said["report"], said["messages"], said["streams"]) == (str(page), 1, 2)
    written = page.read_text()
    assert "&lt;script&gt;alert(#)&lt;/script&gt;" in written
    assert "&lt;b&amp;quot;onclick=alert(1)" in written
    assert "<script" not in written
    assert "No message was published in this time." in written
    rows = [json.loads(line) for line in (tmp_path / "tables" / "keys.json").read_text().splitlines()]
    assert [(row["stream"], row["key"], row["share"]) for row in rows] == [(stream, "<b&quot;onclick=alert(1)", 1.0)]
    names = {file.stem for file in (tmp_path / "tables").iterdir()}
    assert {"streams", "throughput", "latency", "deliveries", "dead_letters", "forecast"} <= names
    assert f"report {stream}" in [each.name for each in bus.list_pipelines()]
    with pytest.raises(postbus.InvalidInput, match="does not exist"):
        run(stream, "--out", str(tmp_path / "no" / "page.html"))
    with pytest.raises(postbus.InvalidInput, match='format = "xls" is not known'):
        run(stream, "--format", "xls")
    with pytest.raises(postbus.NotFound, match="no-such"):
        run("no-such", "--out", str(page))
    with pytest.raises(postbus.InvalidInput, match="ends before it begins"):
        run(stream, "--from", "1d", "--to", "2d", "--out", str(page))


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_tables_can_be_read_by_others(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, format: str
) -> None:
    publish(bus, stream, 3)

    report_on(spark, url, stream, tables=str(tmp_path / "t"), format=format)

    reader = spark.read.option("header", "true").option("inferSchema", "true")
    frame = reader.format(format).load(str(tmp_path / "t" / f"streams.{format}"))
    assert [(row.stream, row.messages) for row in frame.collect()] == [(stream, 3)]


def test_a_signal_ends_a_report_at_once_and_nothing_is_written(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    publish(bus, stream, 10)
    page = tmp_path / "page.html"

    class Impatient(Silence):
        def begin(self, name: str) -> None:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    options = ReportOptions(streams=(stream, stream), out=str(page))

    assert report_streams(url, options, spark=spark, show=Impatient()) is None
    assert not page.exists()
    (known,) = [each for each in bus.list_pipelines() if each.stream == stream]
    assert known.state == "stopped"
    # The session goes on to be of use.
    assert sum(report_on(spark, url, stream).streams[0].traffic.messages) == 10


def test_the_how_to_makes_a_page_and_tables(
    shared_spark: Any, spark_server: servers.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with servers.database(spark_server.url) as url:
        page = run_how_to("report-on-streams", url)

    assert "Latency of billing" in (tmp_path / "report.html").read_text()
    assert '"orders","billing",2,' in (tmp_path / "figures" / "latency.csv").read_text()
    named = set(re.findall(r"`(\w+)`", page.text.split("## Take the figures")[1].split("## What")[0]))
    assert named == {file.stem for file in (tmp_path / "figures").iterdir()}
