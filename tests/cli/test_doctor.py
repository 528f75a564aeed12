"""`postbus doctor`: what is wrong is found, on a real Postgres where it can be made wrong, and comes with what to do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import postbus
from postbus.cli.doctor import machine, server
from postbus.cli.main import build
from postbus.doctor import diagnosis, postgres
from postbus.doctor.diagnosis import Facts
from postbus.doctor.finding import Finding
from tests.cli.shell import Shell
from tests.server.serving import serving
from tests.waiting import until

pytestmark = pytest.mark.newest_server


def findings(url: str) -> list[Finding]:
    return list(postgres.check(diagnosis.examine(url, patience=0.0)))


def of(found: list[Finding], area: str) -> list[Finding]:
    return [finding for finding in found if finding.area == area and finding.level != "ok"]


def test_a_healthy_bus_has_no_problems_and_status_0(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("message", "send", "orders", "k", "1")
    assert shell.url is not None
    with postbus.connect(shell.url) as bus:
        bus.maintain()
    found = shell.objects("doctor")
    assert {each["level"] for each in found} <= {"ok", "note"}
    assert any("PostgreSQL" in each["text"] for each in found)
    assert any("Java" in each["text"] for each in found)
    assert all(each["advice"] for each in found if each["level"] != "ok")
    said = shell.run("doctor")
    assert "✓ Postbus is installed and up to date" in said.out
    assert said.err == "no problems, no warnings\n"


def test_a_database_without_postbus_is_a_problem_and_status_1(empty_url: str) -> None:
    result = CliRunner().invoke(build({"doctor"}), ["doctor", "--url", empty_url])
    assert result.exit_code == 1
    assert "✗ Postbus is not installed in this database\n    run: postbus migrate" in result.stdout


def test_functions_that_act_as_a_superuser_for_other_roles_are_a_warning(shell: Shell) -> None:
    shell("stream", "add", "orders")
    assert shell.url is not None
    assert of(findings(shell.url), "roles") == []
    with psycopg.connect(shell.url, autocommit=True) as owner:
        owner.execute("select postbus.grant_stream('orders', current_user, 'read')")

    (found,) = of(findings(shell.url), "roles")

    assert found.level == "warning"
    assert "create_roles" in (found.advice or "")


def test_an_open_publisher_is_named_with_the_stream_that_it_holds_up(shell: Shell) -> None:
    shell("stream", "add", "orders")
    assert shell.url is not None
    with psycopg.connect(shell.url, application_name="slow importer") as publisher:
        publisher.execute("select postbus.publish('orders', 'k', '1')")
        found = findings(shell.url)
        (held,) = of(found, "horizon")
        assert "blocked readers of stream orders" in held.text
        assert "slow importer, idle in transaction" in held.text
        assert f"pg_terminate_backend({publisher.info.backend_pid})" in (held.advice or "")
        assert [f"pid {publisher.info.backend_pid}" in each.text for each in of(found, "locks")] == [True]
    assert of(findings(shell.url), "horizon") == []


@pytest.fixture
def stranger(shell: Shell) -> Iterator[psycopg.Connection[Any]]:
    """A session of a role that has no rights, and the stream "orders" with the consumer "billing"."""
    shell("stream", "add", "orders", "--partitions", "2")
    shell("consumer", "add", "orders", "billing")
    shell("message", "send", "orders", "k", "1")
    assert shell.url is not None
    role = f"stranger_{secrets.token_hex(4)}"
    with psycopg.connect(shell.url, autocommit=True) as owner:
        owner.execute(f"create role {role} login".encode())
        with psycopg.connect(shell.url, user=role, autocommit=True, application_name="odd job") as connection:
            yield connection
        owner.execute(f"drop role {role}".encode())


FOREIGN_LOCKS = {
    "readers": ("pg_advisory_lock_shared({publisher}, {last})", "publishing and reading"),
    "publishers": ("pg_advisory_lock({publisher}, {last})", "publishing and reading"),
    "a partition": ("pg_advisory_lock({consumer}, 1)", "receiving by consumer billing"),
    "the sweep": ("pg_advisory_lock({consumer}, -2)", "sweeping by consumer billing"),
    "maintenance": ("pg_advisory_lock(1610612736, {stream})", "maintenance"),
    "the schedule": ("pg_advisory_lock(1610612736, -{stream})", "publishing scheduled messages"),
}


@pytest.mark.parametrize("what", FOREIGN_LOCKS)
@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_role_that_holds_a_lock_without_rights_is_named_with_a_remedy(
    shell: Shell, stranger: psycopg.Connection[Any], what: str, in_transaction: bool
) -> None:
    assert shell.url is not None
    assert of(findings(shell.url), "horizon") == []
    call, stops = FOREIGN_LOCKS[what]
    keys = lock_keys(shell.url)
    if in_transaction:
        stranger.execute("begin")
    stranger.execute(f"select {call.format(**keys)}".encode())

    problems = [each for each in of(findings(shell.url), "horizon") if each.level == "problem"]
    (found,) = problems
    pid = stranger.info.backend_pid
    assert f"block {stops}" in found.text
    assert "of stream orders" in found.text
    assert f"pid {pid}, user stranger_" in found.text
    assert "odd job" in found.text
    assert "its role has no right to use Postbus" in found.text
    assert f"pg_terminate_backend({pid})" in (found.advice or "")
    assert "use-roles.md" in (found.advice or "")

    stranger.execute("rollback")
    stranger.execute("select pg_advisory_unlock_all()")
    assert of(findings(shell.url), "horizon") == []


@pytest.mark.parametrize(
    ("statement", "warning"),
    [
        ("begin; select pg_advisory_xact_lock({publisher}, {last})", "this one is exclusive"),
        ("begin; select pg_advisory_xact_lock_shared({publisher}, {last})", "its transaction has written nothing"),
        ("begin; select pg_advisory_xact_lock_shared({consumer}, 0)", "Postbus takes exclusive ones"),
        ("select pg_advisory_lock_shared({publisher}, {last})", "its session has no transaction"),
    ],
)
def test_a_lock_in_a_mode_postbus_never_uses_is_reported(shell: Shell, statement: str, warning: str) -> None:
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "billing")
    shell("message", "send", "orders", "k", "1")
    assert shell.url is not None
    with psycopg.connect(shell.url, autocommit=True) as owner:
        owner.execute(statement.format(**lock_keys(shell.url)).encode())
        found = [each for each in of(findings(shell.url), "horizon") if each.level == "problem"]
        assert [warning in each.text for each in found] == [True]


def test_an_open_transaction_that_received_is_named_but_not_as_a_foreign_lock(shell: Shell) -> None:
    shell("stream", "add", "orders", "--partitions", "1")
    shell("consumer", "add", "orders", "billing")
    shell("message", "send", "orders", "k", "1")
    assert shell.url is not None
    with psycopg.connect(shell.url) as worker:
        worker.execute("select postbus.receive('orders', 'billing')")
        worker.execute("select postbus.publish('orders', 'k', '2')")
        found = of(findings(shell.url), "horizon")
        assert [each.level for each in found] == ["warning", "warning"]
        assert "blocks receiving" in found[1].text
        assert "by consumer billing of stream orders" in found[1].text


def lock_keys(url: str) -> dict[str, int]:
    """What anybody can see in pg_locks while somebody publishes or receives: keys that are no secret."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select id, pg_sequence_last_value('postbus_data.seq_' || id) from postbus_data.stream"
        )
        ((stream, last),) = row.fetchall()
        ((consumer,),) = connection.execute("select id from postbus_data.consumer").fetchall()
    return {"stream": stream, "publisher": 2**30 + stream, "last": last, "consumer": 1610612736 + consumer}


def test_sessions_that_wait_for_locks_are_named_with_the_holders(shell: Shell) -> None:
    shell("stream", "add", "orders")
    assert shell.url is not None
    waiter = psycopg.connect(shell.url, autocommit=True)
    with psycopg.connect(shell.url) as holder:
        holder.execute("lock table postbus_data.token in exclusive mode")
        waiter.pgconn.send_query(b"begin; lock table postbus_data.token in exclusive mode")

        def blocked(url: str = shell.url) -> list[Finding]:
            return [each for each in of(findings(url), "locks") if "for a lock of pid" in each.text]

        (found,) = until(blocked, "it waits")
        assert f"for a lock of pid {holder.info.backend_pid}" in found.text
    waiter.close()


def test_problems_of_streams_and_consumers_are_found(shell: Shell) -> None:
    shell("stream", "add", "orders", "--partitions", "1")
    shell("message", "send", "orders", "k", "1")
    shell("consumer", "add", "orders", "billing", "--keep-unread")
    (delivery,) = shell.objects("receive", "orders", "billing")
    shell("consumer", "terminate", "orders", "billing", delivery["ack_id"])
    shell("consumer", "pause", "orders", "billing")
    assert shell.url is not None
    with psycopg.connect(shell.url, autocommit=True) as connection:
        connection.execute("update postbus_data.stream set is_full = true")
        connection.execute("alter sequence postbus_data.seq_1 cache 5")
        connection.execute("update postbus_data.segment set prepared_at = now() - interval '1 year'")
    found = findings(shell.url)
    texts = " | ".join(f"{each.level}: {each.text}" for each in found)
    assert "problem: stream orders is full and refuses new messages" in texts
    assert "problem: sequence seq_1 caches 5 numbers" in texts
    assert "warning: the log of stream orders is not maintained" in texts
    assert "warning: consumer billing of orders is paused, and the stream keeps what it has not read" in texts
    assert "note: consumer billing of orders has 1 dead letter" in texts
    assert all(each.advice for each in found if each.level != "ok")


def test_a_database_that_nobody_maintains_is_a_warning_until_somebody_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server of the tests may just have been started.
    started = diagnosis._OF_POSTBUS["upkeep"].replace("pg_postmaster_start_time()", "'-infinity'")
    monkeypatch.setitem(diagnosis._OF_POSTBUS, "upkeep", started)
    assert shell.url is not None
    with psycopg.connect(shell.url, autocommit=True) as connection:
        connection.execute("update postbus_data.upkeep set created_at = now() - interval '3 hours'")
        assert of(findings(shell.url), "retention") == []
        shell("stream", "add", "orders")
        (found,) = of(findings(shell.url), "retention")
        assert found.level == "warning"
        assert "nobody maintains this database: for 3 hours" in found.text
        assert "select postbus.maintain()" in (found.advice or "")
        connection.execute("select postbus.maintain()")
    assert of(findings(shell.url), "retention") == []


def test_a_schedule_that_does_not_fire_is_a_problem(fresh_url: str) -> None:
    with postbus.connect(fresh_url, upkeep=False) as bus, psycopg.connect(fresh_url, autocommit=True) as connection:
        bus.create_stream("reports")
        bus.schedules.create("reports", "good", every=60, data=1)
        bus.schedules.create("reports", "left", every=60, data=1)
        connection.execute("select postbus.create_schedule('reports', 'bad', cron => 'never', data => '1')")
        bus.schedules.fill()
        connection.execute(
            "update postbus_data.schedule set filled_until = now() - interval '1 hour' where name = 'left'"
        )

    bad, left = of(findings(fresh_url), "schedules")
    assert bad.text.startswith('schedule bad of reports never fires: cron "never"')
    assert left.text == "schedule left of reports has no further times: nobody works them out"


def _facts(**rows: Any) -> Facts:
    one = {
        "number": 180000,
        "version": "18.0",
        "is_standby": False,
        "database": "bus",
        "role": "me",
        "connections": 3,
        "xid_age": 5,
    }
    empty: dict[str, Any] = dict.fromkeys(("transactions", "blocked", "prepared", "slots"), ())
    return Facts(rows={"server": [one], "settings": [], **empty, **rows})


@pytest.mark.parametrize(
    ("facts", "level", "text"),
    [
        (_facts(settings=[{"name": "fsync", "setting": "off"}]), "problem", "fsync is off"),
        (_facts(settings=[{"name": "autovacuum", "setting": "off"}]), "problem", "autovacuum is off"),
        (_facts(settings=[{"name": "synchronous_commit", "setting": "off"}]), "warning", "synchronous_commit is off"),
        (_facts(settings=[{"name": "max_connections", "setting": "3"}]), "warning", "3 of 3 connections"),
        (_facts(prepared=[{"gid": "x", "seconds": 99}]), "warning", "a prepared transaction has been open for 99 s: x"),
        (
            _facts(slots=[{"slot_name": "old", "active": False, "wal_status": "extended", "retained": 5 * 2**30}]),
            "warning",
            "slot old has no active reader, and retains 5.0 GB of WAL",
        ),
        (
            _facts(slots=[{"slot_name": "old", "active": False, "wal_status": "lost", "retained": None}]),
            "problem",
            "slot old has lost WAL",
        ),
        (
            _facts(bloated=[{"name": "lease", "dead": 900_000, "live": 5, "last_autovacuum": None}]),
            "warning",
            "table postbus_data.lease has 900,000 dead rows",
        ),
        (Facts(rows=_facts().rows, clock_ahead=60), "warning", "60.0 s ahead of that of Postgres"),
        (Facts(rows=_facts().rows, unanswered={"slots": "permission denied"}), "note", "slots could not be checked"),
    ],
)
def test_problems_that_cannot_be_reproduced_are_found_in_simulated_answers(facts: Facts, level: str, text: str) -> None:
    found = [each for each in postgres.check(facts) if text in each.text]
    assert [each.level for each in found] == [level]
    assert found[0].advice


def test_an_old_or_standby_postgres_is_a_problem() -> None:
    (row,) = _facts().rows["server"]
    found = list(postgres.check(_facts(server=[{**row, "number": 140000, "is_standby": True}])))
    assert [each.level for each in found[:2]] == ["problem", "problem"]


def test_a_server_is_checked_with_its_token_and_its_clock(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    token = Shell(fresh_url).objects("token", "create", "test")[0]["token"]
    with serving(fresh_url, require_tokens=True) as api:
        result = CliRunner().invoke(build({"doctor"}), ["doctor", "--url", api.url])
        assert result.exit_code == 1
        assert "✗" in result.stdout
        monkeypatch.setenv("POSTBUS_TOKEN", token)
        said = Shell(api.url)("doctor")
    assert "is ready, and answered in" in said
    assert "it accepts our requests: 0 streams" in said
    assert "the clocks of this machine and the server agree" in said
    assert "the clocks of the server and Postgres agree" in said


def test_a_server_runs_the_checks_of_postgres_for_who_may_manage_all_streams(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        billing = bus.create_consumer("orders", "billing")
        bus.publish("orders", key="k", data=1)
        billing.terminate(billing.receive())
    limited = Shell(fresh_url).objects("token", "create", "some", "--scope", "manage", "--stream", "orders")[0]["token"]
    direct = [(each.area, each.level, each.text) for each in findings(fresh_url) if each.area != "clock"]
    assert ("deliveries", "note", "consumer billing of orders has 1 dead letter") in direct
    with serving(fresh_url) as api:
        found = Shell(api.url).objects("doctor")
    theirs = [(each["area"], each["level"], each["text"]) for each in found]
    assert set(direct) <= set(theirs)
    assert len([text for area, _, text in theirs if area == "clock"]) == 2

    monkeypatch.setenv("POSTBUS_TOKEN", limited)
    with serving(fresh_url, require_tokens=True) as api:
        found = Shell(api.url).objects("doctor")
    (unseen,) = [each for each in found if each["area"] == "postgres"]
    assert (unseen["level"], unseen["text"].startswith("not looked at over HTTP: ")) == ("note", True)
    assert "--url" in unseen["advice"]


def test_what_other_sessions_run_is_not_told_over_http(fresh_url: str) -> None:
    with psycopg.connect(fresh_url) as busy:
        busy.execute("select 'secret'")
        shown = diagnosis.examine(fresh_url, patience=0.0)
        assert any("secret" in (each.advice or "") for each in postgres.check(shown))
        assert not any("secret" in (each.advice or "") for each in postgres.check(diagnosis.without_queries(shown)))


def test_clock_differences_are_reported() -> None:
    now = datetime.now(UTC)
    assert [each.level for each in server.clock(now, now + timedelta(seconds=1.5))] == ["ok"]
    (behind,) = server.clock(now, now - timedelta(minutes=5))
    assert behind.text == "the clock of this machine is 300 s behind the server's"


def test_missing_java_and_a_full_disk_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(*_: Any) -> Path:
        raise postbus.Unavailable("Spark needs Java 17 or later, and there is none", "install one")

    monkeypatch.setattr("postbus.spark.java.find_java", none)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"total": 100, "free": 5})())
    found = list(machine.check(tmp_path / "new"))
    assert [(each.level, each.area) for each in found if each.level != "ok"] == [
        ("problem", "spark"),
        ("warning", "disk"),
    ]
