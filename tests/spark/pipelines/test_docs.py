"""The commands and examples of docs/how-to/keep-history-in-a-lake.md run, as they are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import postbus
from tests import servers
from tests.cli.shell import Shell
from tests.spark.pipelines.how_to import run_how_to


def test_the_how_to_takes_a_stream_to_a_year_of_history(
    shared_spark: Any, spark_server: servers.Server, tmp_path: Path
) -> None:
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        (tmp_path / "url").write_text(url)
        places = {"env:POSTBUS_URL": f"file:{tmp_path / 'url'}", "/lake": tmp_path / "lake"}
        page = run_how_to("keep-history-in-a-lake", url, places=places)

        assert page.said_by("pipeline run archive orders --to /lake")[0].out == "2\n"
        assert "archive orders  done" in page.said_by("pipeline ls")[-1].out
        assert [row["count"] for row in page.scope["per_day"].collect()] == [2]
        assert page.scope["table"].count() == 2
        assert [message.key for message in bus.scan("orders-again")] == ["orders.eu.1"]


def test_a_message_only_in_the_archive_is_reported_with_a_remedy(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    from tests.spark.pipelines.test_archive import to_lake
    from tests.spark.test_read import publish

    bus.create_stream(name, max_messages=5)
    bus.create_consumer(name, "billing")
    publish(bus, name, 20)
    shell = Shell(url)
    assert "archive" not in shell.run("stream", "read", name, "--from", "3").err
    to_lake(spark, url, name, tmp_path)
    bus.maintain(name)

    told = "messages from seq 1 to 15 are only in the archive"
    assert told in shell.run("stream", "read", name, "--from", "3").err
    assert told in shell.run("stream", "read", name, "--from", "1h").err
    assert told not in shell.run("stream", "read", name, "--from", "16").err
    said = shell.run("consumer", "seek", name, "billing", "3", "--yes").err
    assert f"{told} ({tmp_path}/{name}); deliver them with: postbus pipeline run replay {name}" in said
