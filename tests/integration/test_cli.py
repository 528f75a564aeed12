"""The command as a newcomer meets it, in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest

from tests import servers

COMMAND = [str(Path(sys.executable).with_name("postbus"))]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env={**clean, **environment}
    )


def test_migrate_installs_once_and_says_so(empty_url: str) -> None:
    first = run("migrate", "--url", empty_url)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "done: install\n")

    second = run("migrate", POSTBUS_URL=empty_url)
    assert (second.returncode, second.stderr) == (0, "nothing to do: the database is up to date\n")


def test_a_dry_run_prints_the_sql_and_does_nothing(empty_url: str) -> None:
    done = run("migrate", "--dry-run", "--url", empty_url)
    assert done.stderr == "would run: install\n"
    assert "create table postbus_data.stream" in done.stdout
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("select to_regnamespace('postbus')").fetchone() == (None,)


@pytest.mark.parametrize(
    ("arguments", "status", "what"),
    [
        (["migrate", "--url", "postgresql://nobody@127.0.0.1:1/none"], 5, "error: cannot connect to Postgres"),
        (["migrate", "--url", "http://example.com"], 2, 'error: "http://example.com" is not a URL of Postgres'),
        (["migrate", "--url", "postgresql://me:secret@127.0.0.1:1/none"], 5, "error: cannot connect"),
        (["up", "--data-dir", "/proc/nowhere"], 7, "error: the data directory /proc/nowhere cannot be used"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_an_error_is_said_in_two_lines_with_a_status(arguments: list[str], status: int, what: str) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert what in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_up_on_a_database_without_postbus_says_what_to_run(empty_url: str) -> None:
    done = run("up", "--url", empty_url)
    assert done.returncode == 6
    assert done.stderr == "error: Postbus is not installed in this database\nhint:  run: postbus migrate\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_runs_the_embedded_postgres_until_it_is_stopped(number: signal.Signals) -> None:
    with servers.data_directory() as path:
        process = subprocess.Popen(
            [*COMMAND, "up", "--port", "0", "--data-dir", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert _lines(process.stdout).readline().startswith("http://127.0.0.1:")
            url = _lines(process.stdout).readline().strip()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("select postbus.create_stream('orders'), postbus.publish('orders', 'k', '1')")
                assert connection.execute("select data from postbus.read('orders')").fetchall() == [("1",)]
            process.send_signal(number)
            assert process.wait(30) == 0
            said = _lines(process.stderr).read()
        finally:
            process.kill()
    assert "Postbus 0.1.0 is up" in said
    assert "/api/streams/orders/messages" in said
    assert said.endswith("stopped\n")


def _lines(stream: IO[str] | None) -> IO[Any]:
    assert stream is not None
    return stream


def test_version_and_help() -> None:
    assert run("--version").stdout == "postbus 0.1.0\n"
    for arguments in (["--help"], ["up", "--help"], ["migrate", "--help"]):
        done = run(*arguments)
        assert done.returncode == 0
        assert "Usage: postbus" in done.stdout
    assert "Example" in run("up", "--help").stdout
