"""The command as a newcomer meets it, in processes of its own."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import psycopg
import pytest

import postbus
from tests import servers
from tests.server.serving import serving
from tests.waiting import until

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
        (["migrate", "--url", "http://example.com"], 2, "error: migrate needs Postgres itself"),
        (["migrate", "--url", "example.com"], 2, 'error: "example.com" is not a URL'),
        (["migrate", "--url", "postgresql://me:secret@127.0.0.1:1/none"], 5, "error: cannot connect"),
        (["up", "--data-dir", "/proc/nowhere"], 7, "error: the data directory /proc/nowhere cannot be used"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_an_error_is_two_lines_and_an_exit_status(arguments: list[str], status: int, what: str) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert what in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_tls_files_that_cannot_be_used_are_refused_before_anything_is_served(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nonsense")
    files = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    done = run("up", "--port", "0", *files, "--url", "postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 2
    assert "cannot be used for TLS" in done.stderr
    assert "is up" not in done.stderr


def test_the_password_of_the_database_is_not_shown() -> None:
    with subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--url", "postgresql://me:secret@127.0.0.1:1/none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            shown = [_lines(process.stdout).readline() for _ in range(4)]
        finally:
            process.kill()
    assert "postgresql://me:***@127.0.0.1:1/none\n" in shown
    assert "secret" not in "".join(shown)


def test_up_on_a_database_without_postbus_says_what_to_run(empty_url: str) -> None:
    done = run("up", "--url", empty_url)
    assert done.returncode == 6
    assert done.stderr == "error: Postbus is not installed in this database\nhint:  run: postbus migrate\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_runs_the_embedded_postgres_until_it_is_stopped(number: signal.Signals) -> None:
    with (
        servers.data_directory() as path,
        subprocess.Popen(
            [*COMMAND, "up", "--port", "0", "--data-dir", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
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
    assert f"Postbus {postbus.__version__} is up" in said
    assert "/api/streams/orders/messages" in said
    assert said.endswith("stopped\n")


def _lines(stream: IO[str] | None) -> IO[Any]:
    assert stream is not None
    return stream


def test_version_and_help() -> None:
    assert run("--version").stdout == f"postbus {postbus.__version__}\n"
    for arguments in (["--help"], ["up", "--help"], ["migrate", "--help"]):
        done = run(*arguments)
        assert done.returncode == 0
        assert "Usage: postbus" in done.stdout
    assert "Example" in run("up", "--help").stdout


@pytest.mark.newest_server
def test_help_is_there_at_once_because_nothing_heavy_is_imported() -> None:
    program = "import sys, postbus.cli.main as m; m.build(m.called(['--help'])); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "typer" in loaded
    for heavy in ("psycopg", "asyncio", "textual", "pyspark", "uvicorn", "orjson", "postbus.client"):
        assert heavy not in loaded


@pytest.mark.newest_server
def test_a_client_of_a_server_imports_no_driver(fresh_url: str) -> None:
    program = "import sys, postbus; postbus.connect(sys.argv[1]).close(); print(*sys.modules)"
    with serving(fresh_url) as api:
        command = [sys.executable, "-c", program, api.url]
        loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "httpx" in loaded
    for unneeded in ("psycopg", "postbus.db._sync.database", "postbus.worker._sync.worker"):
        assert unneeded not in loaded


@pytest.mark.newest_server
def test_consumer_add_asks_on_a_terminal_and_asks_again_what_cannot_be_right(fresh_url: str) -> None:
    run("stream", "add", "orders", "--url", fresh_url)
    answers = ["sideways", "none", "orders.>", "latest", "soon", "2m", "", "5", "1s,10s"]
    said = on_terminal("consumer", "add", "orders", "billing", "--url", fresh_url, answers=answers)
    assert '"sideways" is not one of key, none, partition' in said
    assert '"soon" is not a duration' in said
    assert "created consumer billing" in said
    with postbus.connect(fresh_url) as bus:
        info = bus.consumer("orders", "billing").info()
    assert (info.order, info.filter_key_pattern, info.max_deliver) == ("none", "orders.>", 5)
    assert (info.ack_wait.total_seconds(), info.max_ack_pending) == (120, 10_000)
    assert [delay.total_seconds() for delay in info.backoff] == [1, 10]


@pytest.mark.newest_server
def test_consumer_add_asks_nothing_with_settings_or_defaults_or_without_a_terminal(fresh_url: str) -> None:
    run("stream", "add", "orders", "--url", fresh_url)
    assert "Order" not in on_terminal("consumer", "add", "orders", "a", "--defaults", "--url", fresh_url)
    assert "Order" not in on_terminal("consumer", "add", "orders", "b", "--ack-wait", "1m", "--url", fresh_url)
    assert run("consumer", "add", "orders", "c", "--url", fresh_url).returncode == 0


@pytest.mark.newest_server
def test_follow_prints_and_acks_what_comes_until_ctrl_c(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        billing = bus.create_consumer("orders", "billing")
        with subprocess.Popen(
            [*COMMAND, "receive", "orders", "billing", "--follow", "--ack", "--url", fresh_url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process:
            try:
                for number in (1, 2):
                    bus.publish("orders", key="k", data={"n": number})
                    assert _lines(process.stdout).readline() == f'{number}  k  {{"n": {number}}}\n'
                until(lambda: billing.stats().in_flight == 0, "they are acked")
                process.send_signal(signal.SIGINT)
                assert process.wait(10) == 0
                assert _lines(process.stderr).read() == ""
            finally:
                process.kill()
        assert billing.stats().lag_estimate == 0


@pytest.mark.newest_server
def test_a_stream_is_followed_without_taking_anything_from_its_consumers(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        billing = bus.create_consumer("orders", "billing", max_deliver=1)
        bus.publish("orders", key="k", data="before")
        command = [*COMMAND, "stream", "read", "orders", "--follow", "--from", "1", "--url", fresh_url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        ) as process:
            try:
                assert _lines(process.stdout).readline() == '1  k  "before"\n'
                bus.publish("orders", key="k", data="after")
                assert _lines(process.stdout).readline() == '2  k  "after"\n'
                process.send_signal(signal.SIGINT)
                assert process.wait(10) == 0
            finally:
                process.kill()
        assert sorted(delivery.attempt for delivery in billing.receive(10)) == [1, 1]


@pytest.mark.newest_server
def test_a_file_is_sent_with_a_bar_and_a_rate_on_a_terminal(fresh_url: str, tmp_path: Path) -> None:
    run("stream", "add", "orders", "--url", fresh_url)
    (tmp_path / "lines").write_text('{"data": 1}\n' * 5000)
    said = on_terminal("message", "send", "orders", "--file", str(tmp_path / "lines"), "--url", fresh_url)
    assert "100 %" in said
    assert "published 5,000 messages" in said


@pytest.mark.newest_server
@pytest.mark.parametrize(
    "shell", ["bash", pytest.param("zsh", marks=pytest.mark.slow), pytest.param("fish", marks=pytest.mark.slow)]
)
def test_names_of_commands_streams_and_consumers_are_completed(fresh_url: str, shell: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        bus.create_stream("other")
        bus.create_consumer("orders", "billing")

    def completed(line: str) -> str:
        words = line.split(" ")
        return run(
            POSTBUS_URL=fresh_url,
            _POSTBUS_COMPLETE=f"complete_{shell}",
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1),
            _TYPER_COMPLETE_ARGS=line,
            _TYPER_COMPLETE_FISH_ACTION="get-args",
        ).stdout

    streams = completed("postbus stream info or")
    assert "orders" in streams
    assert "other" not in streams
    if shell != "bash":
        return  # The names come from the same functions.
    assert "stream" in completed("postbus str")
    assert "billing" in completed("postbus receive orders b")
    assert completed("postbus receive nowhere b").strip() == ""


def on_terminal(*arguments: str, answers: Sequence[str] = ()) -> str:
    """What a command says on a terminal of its own, where these answers are typed."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        said = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # The other side is closed.
                break
            said += part
        assert process.wait(30) == 0, said
    os.close(ours)
    return said.decode()


@pytest.mark.newest_server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_can_be_used_and_stopped_as_soon_as_it_prints_its_address(fresh_url: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--url", fresh_url, "--no-access-log"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        address = urlsplit(_lines(process.stdout).readline().strip())
        socket.create_connection((address.hostname, address.port), timeout=5).close()
        process.send_signal(number)
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.newest_server
def test_up_speaks_to_people_on_a_terminal(fresh_url: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--url", fresh_url],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        try:
            address = _lines(process.stdout).readline().strip()
            run("stream", "ls", "--url", address)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()
    said = os.read(ours, 65536).decode()
    os.close(ours)
    port = address.rpartition(":")[2]
    assert f"postbus context create local-{port} --url {address} --use" in said
    assert "GET /api/streams  200  " in said
    assert "/health" not in said
    assert '"event"' not in said


@pytest.mark.newest_server
def test_on_a_terminal_a_stream_without_new_messages_says_that_it_is_followed(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "stream", "read", "orders", "--follow", "--url", fresh_url], stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            said = os.read(ours, 65536).decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()
            os.close(ours)
    assert said.startswith("new messages of orders, until Ctrl-C; from the first one: --from 1")


@pytest.mark.slow
@pytest.mark.newest_server
def test_a_file_of_any_length_is_sent_in_the_same_memory(fresh_url: str, tmp_path: Path) -> None:
    run("stream", "add", "orders", "--url", fresh_url)
    peaks = []
    for count in (10_000, 200_000):
        with (tmp_path / "lines").open("w") as file:
            file.writelines(f'{{"key": "k.{n}", "data": {{"n": {n}, "note": "{"x" * 200}"}}}}\n' for n in range(count))
        command = [
            *COMMAND,
            "message",
            "send",
            "orders",
            "--file",
            str(tmp_path / "lines"),
            "--url",
            fresh_url,
            "--quiet",
        ]
        process = os.posix_spawn(command[0], command, os.environ)
        _, status, usage = os.wait4(process, 0)
        assert status == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < peaks[0] + 10_000  # Kilobytes; the file is 45 MB longer.
