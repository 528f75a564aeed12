"""Sources on the command line, in the server's process, in metrics and in doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from typer.testing import CliRunner

import postbus
from postbus.cli.main import build
from postbus.cli.observe.app import Observe
from postbus.doctor import diagnosis, postgres
from postbus.sources import outbox
from tests.cli.shell import Shell
from tests.cli.test_processes import on_terminal
from tests.server.serving import serving
from tests.sources.reading import SourceBed
from tests.waiting import until

pytestmark = pytest.mark.newest_server


@pytest.fixture
def shell(orders: SourceBed) -> Shell:
    return Shell(orders.url)


def with_password(url: str) -> str:
    return url.replace(f"{urlsplit(url).username}@", f"{urlsplit(url).username}:geheim@", 1)


def test_a_source_is_added_listed_changed_and_removed(orders: SourceBed, shell: Shell) -> None:
    said = shell.run(
        "source",
        "postgres",
        "add",
        "shop",
        "new",
        "--table",
        "orders",
        "--create-stream",
        "--columns",
        "orders=id,total",
    )
    assert "created stream new" in said.err
    assert "postbus source run" in said.err

    assert "not_running" in shell("source", "postgres", "ls")
    assert "shop" in shell("source", "ls")
    shell("source", "postgres", "edit", "shop", "--format", "debezium", "--operation", "insert")
    info = shell("source", "postgres", "info", "shop")
    assert "debezium" in info
    orders.start("shop")
    assert "backfill done" in shell("source", "postgres", "info", "shop")
    shell("source", "postgres", "backfill", "shop", "--table", "orders")
    shell("source", "postgres", "pause", "shop")
    assert "paused" in shell("source", "postgres", "ls")
    shell("source", "postgres", "resume", "shop")
    orders.stop()
    shell("source", "postgres", "restart", "shop", "--yes")
    shell("source", "postgres", "rm", "shop", "--yes")
    assert shell.objects("source", "ls") == []
    assert orders.slot_names() == []


def test_what_stands_in_the_way_is_printed_with_sql(orders: SourceBed, shell: Shell) -> None:
    orders.sql.execute("create table bare (n int)")

    said = shell.run("source", "postgres", "add", "shop", "changes", "--table", "bare", "--check", status=1)

    assert "problem  " in said.out
    assert "replica identity full;" in said.out
    assert shell.run("source", "postgres", "add", "x", "changes", "--table", "orders", "--check").err.startswith(
        "nothing"
    )


def test_the_url_of_a_source_stays_secret_on_the_command_line(
    orders: SourceBed, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", with_password(orders.url))
    arguments = ("source", "postgres", "add", "shop", "changes", "--table", "orders", "--database-url")
    with serving(orders.url) as api:
        shown = CliRunner().invoke(build(), [*arguments, "env:SHOP_URL", "--as-curl", "--url", api.url])
        assert shown.exit_code == 0, shown.output
    said = [shown.output]
    said += [text for each in [shell.run(*arguments, "env:SHOP_URL")] for text in (each.out, each.err)]
    said += [shell("source", "ls"), shell("source", "ls", "--json"), shell("source", "postgres", "info", "shop")]
    refused = CliRunner().invoke(
        build(), [*arguments, "-", "--url", orders.url], input="postgresql://a:geheim@b:p:q/\n"
    )
    said.append(repr(refused.exception) + refused.output)

    assert "geheim" not in "".join(said)
    assert "/api/sources" in shown.output
    row = orders.sql.execute("select url from postbus_data.source").fetchone()
    assert row == (with_password(orders.url),)


def test_only_the_owner_can_read_the_url(orders: SourceBed) -> None:
    orders.create("orders")
    orders.sql.execute("create role eve_of_sources login")
    try:
        with psycopg.connect(orders.url, autocommit=True) as eve:
            eve.execute("set role eve_of_sources")
            for statement in ("select url from postbus_data.source", "select * from postbus.list_sources()"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    eve.execute(statement.encode())
    finally:
        orders.sql.execute("drop role eve_of_sources")


@pytest.fixture
def up(orders: SourceBed) -> Iterator[Any]:
    command = [
        str(Path(sys.executable).with_name("postbus")),
        "up",
        "--url",
        orders.url,
        "--port",
        "0",
        "--workers",
        "2",
    ]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait(40) == 0


def test_a_server_reads_sources_and_ends_its_process(orders: SourceBed, up: str) -> None:
    with postbus.connect(up) as bus:
        bus.sources.create("shop", "changes", tables=["orders"], backfill=False)
        orders.sql.execute("insert into orders values (1)")
        until(lambda: bus.sources.info("shop").state == "streaming", "it streams")
        orders.wait_for_messages(1)


def test_metrics_have_its_lag_and_state(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    with serving(orders.url) as api:
        page = api.get("/metrics").text
    assert 'postbus_source_streaming{source="shop",stream="changes"} 1.0' in page
    assert 'postbus_source_state{source="shop",state="streaming"} 1.0' in page
    assert "postbus_source_lag_bytes{" in page


def test_doctor_says_what_is_wrong_with_it(orders: SourceBed) -> None:
    def found() -> list[Any]:
        return [each for each in postgres.check(diagnosis.examine(orders.url, patience=0.0)) if each.area == "sources"]

    orders.create("orders")
    orders.start()
    assert found() == []
    orders.stop()
    orders.sql.execute("update postbus_data.source_status set held_at = now() - interval '1 minute'")
    (nobody,) = found()
    assert "nobody reads source shop" in nobody.text
    orders.advance_slot()
    orders.sql.execute("insert into orders values (1)")
    orders.advance_slot()
    orders.read()
    orders.wait_for("gap")
    (gap,) = found()
    assert gap.level == "problem"
    assert "restart shop" in (gap.advice or "")


async def test_observe_shows_sources(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    async with await postbus.connect_async(orders.url) as bus:
        app = Observe(bus, shown_url="the bus", interval=0.1)
        async with app.run_test(size=(140, 40)) as pilot:
            await pilot.press("w")
            end = time.monotonic() + 10
            text = ""
            while "streaming" not in text and time.monotonic() < end:
                await pilot.pause(0.1)
                text = "\n".join(
                    "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
                )
            assert "shop" in text
            assert "streaming" in text


def test_slots_and_publications_of_others_can_be_used(orders: SourceBed) -> None:
    orders.sql.execute("create publication mine for table orders with (publish = 'insert')")
    with postbus.connect(orders.url) as bus:
        bus.sources.create("shop", "changes", tables=["orders"], publication="mine", slot="my_slot", backfill=False)
        orders.start()
        orders.sql.execute("insert into orders values (1)")
        orders.sql.execute("update orders set item = 'x'")
        orders.sql.execute("insert into orders values (2)")
        orders.wait_for_messages(2)
        orders.stop()
        bus.sources.drop("shop")
    assert orders.sql.execute("select pubname from pg_publication").fetchall() == [("mine",)]
    assert json.dumps(orders.slot_names()) == "[]"


def test_add_asks_a_newcomer_on_a_terminal(orders: SourceBed) -> None:
    answers = ["y", "orders", "shop", "fresh", "y"]
    said = on_terminal("source", "postgres", "add", "--url", orders.url, answers=answers)

    assert "There is no stream fresh. Create it?" in said
    assert "created source shop" in said
    assert orders.info()["stream"] == "fresh"


def test_memory_stays_bounded_while_the_stream_is_blocked(orders: SourceBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be published waits in the log of the source."""
    monkeypatch.setattr(outbox, "LARGE_BYTES", 100_000)
    sizes: list[int] = []
    close = outbox.Outbox.close

    def close_and_look(self: outbox.Outbox, *arguments: Any) -> None:
        close(self, *arguments)
        sizes.append(self._closed.size)

    monkeypatch.setattr(outbox.Outbox, "close", close_and_look)
    orders.create("orders")
    orders.start()
    with psycopg.connect(orders.url) as other:
        other.execute("select from postbus_data.source for update")
        for number in range(60):
            orders.sql.execute("insert into orders values (%s, repeat('x', 8000))", (number,))
        time.sleep(1)
    orders.wait_for_messages(60)

    assert max(sizes) <= 100_000


def test_the_process_that_reads_ends_with_a_server_that_is_killed(orders: SourceBed) -> None:
    orders.create("orders")
    command = [str(Path(sys.executable).with_name("postbus")), "up", "--url", orders.url, "--port", "0"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean) as process:
        orders.wait_for("streaming")
        process.kill()

    readers = "select from pg_replication_slots where database = current_database() and active"
    until(lambda: not orders.sql.execute(readers).fetchall(), "nobody reads")
