"""Encodings: Postbus is installed in UTF8 only, and whatever a client's environment says makes no difference there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql as composed

import postbus
from postbus import sql
from postbus.db import arrow, migrations
from postbus.db.embedded import binaries
from postbus.doctor import diagnosis, postgres
from tests import servers

INSTALL_SCRIPT = Path(sql.__file__).parent / "install.sql"
# Two of one byte, one of two bytes that holds less than Unicode, and one that means nothing.
OTHERS = ("SQL_ASCII", "EUC_JP", "LATIN1", "WIN1252")
TEXT = "Grüße, 日本語 ✓ 😀"


@pytest.fixture(params=OTHERS)
def other_url(request: pytest.FixtureRequest, server: servers.Server) -> Iterator[str]:
    """A database of another encoding."""
    name = f"postbus_test_{request.param.lower()}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        statement = "create database {} encoding {} template template0 locale 'C'"
        connection.execute(composed.SQL(statement).format(composed.Identifier(name), request.param))
        try:
            yield servers.url_of(server.url, name)
        finally:
            connection.execute(composed.SQL("drop database {} with (force)").format(composed.Identifier(name)))


def with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def test_another_encoding_is_refused_in_words(other_url: str) -> None:
    for dry_run in (True, False):
        with pytest.raises(postbus.MigrationDue, match="Postbus needs UTF8") as refused:
            migrations.migrate(other_url, dry_run=dry_run)
        assert "encoding 'UTF8'" in (refused.value.hint or "")
    with pytest.raises(postbus.MigrationDue):
        postbus.connect(other_url)
    found = list(postgres.check(diagnosis.examine(other_url)))
    assert any(each.level == "problem" and "Postbus needs UTF8" in each.text for each in found)


def test_the_install_script_refuses_another_encoding(other_url: str) -> None:
    psql = (
        binaries.find().program("psql"),
        "--no-psqlrc",
        "--set=ON_ERROR_STOP=1",
        f"--file={INSTALL_SCRIPT}",
        other_url,
    )
    refused = subprocess.run(psql, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "Postbus needs UTF8" in refused.stderr


@pytest.mark.parametrize("asked", ["SQL_ASCII", "EUC_JP", "LATIN1"])
@pytest.mark.parametrize("how", ["environment", "parameter", "options", "database"])
def test_the_client_encoding_makes_no_difference(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, asked: str, how: str
) -> None:
    url = empty_url
    if how == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", asked)
    elif how == "parameter":
        url = with_query(url, f"client_encoding={asked}")
    elif how == "options":
        url = with_query(url, f"options=-c%20client_encoding%3D{asked}")
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            name = composed.Identifier(connection.info.dbname)
            connection.execute(composed.SQL("alter database {} set client_encoding = {}").format(name, asked))

    assert [step.name for step in migrations.migrate(url)] == ["install"]
    assert migrations.migrate(url) == []
    with postbus.connect(url) as bus:
        bus.create_stream("orders")
        bus.create_stream("bytes", data_type="bytes")
        consumer = bus.create_consumer("orders", "billing")
        bus.publish("orders", key="ключ", data={"text": TEXT}, headers={"à": TEXT})
        bus.publish_many("orders", [postbus.Message(key="ключ", data=TEXT)])
        bus.publish("bytes", key="ключ", data=b"\xff\x00")
        received = consumer.receive(10)
        assert [(each.key, each.data) for each in received] == [("ключ", {"text": TEXT}), ("ключ", TEXT)]
        consumer.nack(received, reason=TEXT)
        assert [each.data for each in bus.read("bytes")] == [b"\xff\x00"]
    assert not diagnosis.examine(url).unanswered
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        # The functions' own comments were not taken for another encoding either.
        row = connection.execute(
            "select count(*) from pg_proc where prosrc like '%µs%' and prosrc like '%Âµ%'"
        ).fetchone()
        assert row == (0,)
        row = connection.execute("select count(*) > 0 from pg_proc where prosrc like '%µs%'").fetchone()
        assert row == (True,)


@pytest.mark.newest_server
def test_spark_reads_utf8_whatever_its_environment_says(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    text = "Grüße"
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, client_encoding="UTF8") as database:
        bus.create_stream("orders", partitions=1)
        bus.publish("orders", key=text, data=text)
        row = database.execute("select s.id, c.system_identifier from postbus_data.stream s, pg_control_system() c")
        ((stream_id, system),) = row.fetchall()
    wanted = arrow.Range(stream_id, (arrow.Segment(1, 0, 0),), 0, 10)
    (batch,) = arrow.read_batches(fresh_url, str(system), wanted, ["key", "data"], arrow.MessageFilter(key=text))
    assert batch.to_pylist() == [{"key": text, "data": f'"{text}"'}]


@pytest.mark.newest_server
def test_rows_of_a_database_of_another_encoding_are_read_as_what_they_mean(other_url: str) -> None:
    if "ascii" in other_url:
        pytest.skip("nobody knows what its bytes mean")
    text = "Grüße" if "jp" not in other_url else "日本語"
    with psycopg.connect(other_url, client_encoding="UTF8") as database:
        snapshot = database.execute("select pg_export_snapshot()").fetchone()
        assert snapshot is not None
        (batch,) = arrow.read_rows(other_url, snapshot[0], (), f"select '{text}'::text as text")
    assert batch.to_pylist() == [{"text": text}]


def test_a_callers_connection_with_the_wrong_encoding_is_refused(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, client_encoding="LATIN1") as own:
        bus.create_stream("orders")
        with pytest.raises(postbus.InvalidInput, match="client_encoding"):
            bus.publish("orders", data=1, connection=own)
