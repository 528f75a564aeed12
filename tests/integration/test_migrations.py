"""Installing Postbus, upgrading it, and refusing what does not fit."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus import sql
from postbus.db import migrations
from postbus.db.arrays import TextArray, encode
from postbus.db.embedded import binaries
from tests.catalogs import catalog, differences
from tests.waiting import until

INSTALL_SCRIPT = Path(sql.__file__).parent / "install.sql"
RELEASES = sorted(
    (Path(__file__).parents[1] / "releases").glob("*.sql"),
    key=lambda release: [int(number) for number in re.findall(r"\d+", release.stem)],
)


def test_a_fresh_install_is_one_step_and_can_be_used(empty_url: str) -> None:
    assert names(migrations.migrate(empty_url)) == ["install"]

    with postbus.connect(empty_url) as bus:
        bus.create_stream("orders")
        seq = bus.publish("orders", key="a", data=1)
        assert [message.seq for message in bus.read("orders")] == [seq]


def test_the_second_time_there_is_nothing_to_do(fresh_url: str) -> None:
    before = catalog(fresh_url)

    assert migrations.migrate(fresh_url) == []
    assert catalog(fresh_url) == before


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_of_two_who_install_at_once_one_waits_and_finds_it_done(empty_url: str, isolation: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as observer, ThreadPoolExecutor(2) as installers:
        execute(
            observer, f"alter database \"{observer.info.dbname}\" set default_transaction_isolation = '{isolation}'"
        )
        with observer.transaction():
            execute(observer, f"select pg_advisory_xact_lock({migrations._INSTALL_LOCK})")
            both = [installers.submit(migrations.migrate, empty_url) for _ in range(2)]
            with psycopg.connect(empty_url, autocommit=True) as onlooker:
                until(lambda: waiting_count(onlooker) == 2, "both wait for their turn")

        assert sorted(names(installer.result()) for installer in both) == [[], ["install"]]
    postbus.connect(empty_url).close()


def test_a_dry_run_tells_the_steps_and_changes_nothing(empty_url: str) -> None:
    (step,) = migrations.migrate(empty_url, dry_run=True)

    assert step.name == "install"
    assert "create schema postbus_data" in step.statements
    with psycopg.connect(empty_url) as connection:
        assert execute(connection, "select nspname from pg_namespace where nspname like 'postbus%'") == []


@pytest.mark.parametrize("connect", [postbus.connect, postbus.connect_async], ids=["sync", "async"])
async def test_connecting_to_a_database_without_postbus_says_what_to_run(empty_url: str, connect: Any) -> None:
    with pytest.raises(postbus.MigrationDue, match="not installed") as refused:
        await connected(connect, empty_url)

    assert refused.value.hint == "run: postbus migrate"


@pytest.mark.parametrize("connect", [postbus.connect, postbus.connect_async], ids=["sync", "async"])
async def test_a_database_newer_than_the_code_is_refused(fresh_url: str, connect: Any) -> None:
    with psycopg.connect(fresh_url) as connection:
        execute(connection, "insert into postbus_data.migration (number, name) values (9999, 'from the future')")
    before = catalog(fresh_url)

    for attempt in (connected(connect, fresh_url), asyncio.to_thread(migrations.migrate, fresh_url)):
        with pytest.raises(postbus.MigrationDue, match="at step 9999") as refused:
            await attempt
        assert "pip install --upgrade postbus" in str(refused.value.hint)
    assert catalog(fresh_url) == before


def test_functions_that_differ_from_the_codes_are_due_and_are_replaced(fresh_url: str) -> None:
    before = catalog(fresh_url)
    with psycopg.connect(fresh_url) as connection:
        execute(connection, "update postbus_data.installation set functions_digest = 'other'")
        execute(
            connection,
            "create or replace function postbus.drop_stream(stream text) returns void language sql as 'select 1'",
        )

    with pytest.raises(postbus.MigrationDue, match="lacks functions") as due:
        postbus.connect(fresh_url)
    assert due.value.hint == "run: postbus migrate"

    assert names(migrations.migrate(fresh_url)) == ["functions"]
    assert differences(catalog(fresh_url), before) == []


def test_an_install_that_fails_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = f"{sql.functions()}\nselect 1 / 0;"
    monkeypatch.setattr(sql, "functions", lambda: broken)

    with pytest.raises(postbus.Error, match="division by zero"):
        migrations.migrate(empty_url)

    with psycopg.connect(empty_url) as connection:
        assert execute(connection, "select nspname from pg_namespace where nspname like 'postbus%'") == []


def test_an_upgrade_stops_at_a_step_that_fails_and_continues_from_there(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = sql.Migration(9001, "good", "create table postbus_data.good ();")
    broken = sql.Migration(9002, "broken", "create table postbus_data.half (); select 1 / 0;")
    mended = sql.Migration(9002, "mended", "drop function postbus.horizon;")
    known = sql.migrations()

    monkeypatch.setattr(sql, "migrations", lambda: (*known, good, broken))
    with pytest.raises(postbus.Error, match="division by zero"):
        migrations.migrate(fresh_url)
    with psycopg.connect(fresh_url) as connection:
        assert execute(connection, "select max(number) from postbus_data.migration") == [(9001,)]
        assert execute(connection, "select to_regclass('postbus_data.half')") == [(None,)]
    with pytest.raises(postbus.MigrationDue, match="lacks 9002_broken, functions"):
        postbus.connect(fresh_url)

    monkeypatch.setattr(sql, "migrations", lambda: (*known, good, mended))
    assert names(migrations.migrate(fresh_url)) == ["9002_mended", "functions"]
    with psycopg.connect(fresh_url) as connection:
        assert execute(connection, "select to_regproc('postbus.horizon') is not null") == [(True,)]
    assert migrations.migrate(fresh_url) == []


def test_an_install_needs_no_more_than_create_on_the_database(plain_url: str) -> None:
    migrations.migrate(plain_url)

    with postbus.connect(plain_url) as bus:
        bus.create_stream("orders", segment_bytes=65536)
        seqs = bus.publish_many("orders", [postbus.Message(key="a", data="x" * 1000) for _ in range(200)])
        assert [message.seq for message in bus.scan("orders")] == seqs
        assert bus.maintain() > 0
        assert bus.horizon_holders("orders") == []
        bus.drop_stream("orders")


def test_psql_installs_the_same_from_the_one_file(empty_url: str, fresh_url: str) -> None:
    run_script(empty_url, INSTALL_SCRIPT)

    assert differences(catalog(empty_url), catalog(fresh_url)) == []
    assert migrations.migrate(empty_url) == []


def test_psql_cannot_install_twice_nor_by_halves(empty_url: str) -> None:
    run_script(empty_url, INSTALL_SCRIPT)
    before = catalog(empty_url)

    with pytest.raises(subprocess.CalledProcessError):
        run_script(empty_url, INSTALL_SCRIPT)

    assert catalog(empty_url) == before


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.stem)
def test_an_upgraded_release_equals_a_fresh_install(empty_url: str, fresh_url: str, release: Path) -> None:
    run_script(empty_url, release)

    migrations.migrate(empty_url)

    assert differences(catalog(empty_url), catalog(fresh_url)) == []


@pytest.mark.parametrize("register", [1, 33], ids=["whole", "ahead"])
@pytest.mark.parametrize("tables", ["kept", "sealed", "dropped"])
def test_an_upgrade_mends_a_register_of_ids_that_a_crash_left_ahead(empty_url: str, register: int, tables: str) -> None:
    run_script(empty_url, RELEASES[0])
    with psycopg.connect(empty_url, autocommit=True) as connection:
        execute(connection, "select postbus.create_stream('orders', dedup_window => '1 hour')")
        execute(connection, "select postbus.publish('orders', data => '1', dedup_id => 'old')")
        execute(connection, f"select setval('postbus_data.dedup_1', {register})")
        if register > 1 and tables == "sealed":
            execute(connection, "select postbus.maintain('orders'), postbus.maintain('orders')")
        if register > 1 and tables == "dropped":
            execute(connection, "drop table postbus_data.dedup_1_1")
            execute(connection, "delete from postbus_data.dedup")

    migrations.migrate(empty_url)

    with postbus.connect(empty_url) as bus:
        old = bus.publish("orders", data=2, dedup_id="old")
        assert isinstance(old, postbus.Seq)
        assert old.is_duplicate == (register == 1 or tables != "dropped")
        for _ in range(4):
            bus.maintain("orders")
        with psycopg.connect(empty_url) as connection:
            assert execute(connection, "select number, sealed_at from postbus_data.dedup") == [(1, None)]
            assert execute(connection, "select last_value, log_cnt from postbus_data.dedup_1") == [(1, 0)]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.stem)
def test_sql_functions_of_former_releases_exist_after_an_upgrade(empty_url: str, release: Path) -> None:
    """So programs that were written for it go on, and those that run meanwhile."""
    run_script(empty_url, release)
    with psycopg.connect(empty_url, autocommit=True, prepare_threshold=0) as program:
        calls = (
            "select postbus.publish('orders', 'k', '1', dedup_id => gen_random_uuid()::text) > 0",
            "select cardinality(postbus.publish_many('orders', array['k', 'k', 'k', 'k'], array['1', '2', '3', '4'])) = 4",
            "select postbus_data.publish_1('k', '1', null) > 0",
            "select postbus.ack('orders', 'billing', array_agg(r.ack_id)) = 2 from postbus.receive('orders', 'billing', 2) as r",
            "select count(*) = 1 from postbus.read('orders', max_messages => 1)",
            "select count(*) > 0 from postbus.claim('orders', 'group', 1)",
            # As its library receives, in a session of its own and in another, and from a group.
            "select (b.batch).lease is not null from postbus_data.serve('orders', 'billing', 1, null, 'json', null) as b",
            "select (b.batch).seqs <> '{}' from postbus_data.receive_batches('orders', 'billing', 1, null, 'json', null) as b",
            "select (b.batch).seqs is not null from postbus_data.serve('orders', 'group', 1, interval '0', 'json', null) as b",
            "select postbus.maintain() >= 0 and postbus.sweep() >= 0",
        )
        execute(program, "select postbus.create_stream('orders', partitions => 1, dedup_window => '1 hour')")
        execute(program, "select postbus.create_consumer('orders', 'billing', ordering => 'none')")
        execute(program, "select postbus.create_group('orders', 'group')")
        assert [execute(program, call) for call in calls] == [[(True,)]] * len(calls)
        before = offered(program)

        migrations.migrate(empty_url)

        assert [execute(program, call) for call in calls] == [[(True,)]] * len(calls)
        # What the present library calls is there for streams of that release too.
        assert execute(program, "select postbus_data.ack_1('orders', 'billing', '{}')") == [(0,)]
        after = offered(program)
    assert {
        name: missing for name, arguments in before.items() if (missing := arguments - after.get(name, set()))
    } == {}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.stem)
def test_the_library_of_a_former_release_acks_over_the_connections_that_it_has(empty_url: str, release: Path) -> None:
    """It lets Postgres find out that ack ids are an array, which it does when it prepares the call."""
    run_script(empty_url, release)
    with psycopg.connect(empty_url, autocommit=True) as program:
        execute(program, "select postbus.create_stream('orders')")
        execute(program, "select postbus.create_consumer('orders', 'billing', ordering => 'none')")
        execute(program, "select postbus.publish('orders', 'k', '1')")
        ((ack_id,),) = execute(program, "select ack_id from postbus.receive('orders', 'billing')")
        program.pgconn.prepare(b"ack", b"select postbus.ack($1, $2, $3)")

        migrations.migrate(empty_url)

        ids = encode(TextArray([ack_id.encode()]))
        done = program.pgconn.exec_prepared(b"ack", [b"orders", b"billing", ids], [0, 0, 1])
        assert (done.error_message, done.get_value(0, 0)) == (b"", b"1")


@pytest.mark.parametrize("release", RELEASES[-1:], ids=lambda release: release.stem)
def test_other_functions_than_the_last_releases_come_with_a_migration(release: Path) -> None:
    """Else the last release would take this one's database for an older one, and offer to put its own functions there."""
    script = release.read_text()
    digest = re.findall(r"functions_digest\) values \('(\w+)'\)", script)
    numbers = re.findall(r"[(](\d+), '\w+'[)]", "".join(re.findall(r"postbus_data.migration .*", script)))

    assert len(digest) == 1
    assert digest[0] == sql.functions_digest() or sql.migrations()[-1].number > max(map(int, numbers))


def test_the_comparison_of_catalogs_sees_every_kind_of_difference(fresh_url: str) -> None:
    changes = {
        "column": "alter table postbus_data.stream alter column roll_due drop default",
        "constraint": "alter table postbus_data.stream add check (id > 0)",
        "index": "drop index postbus_data.segment_last_seq",
        "function": "alter function postbus.drop_stream(text) stable",
        "type": "create type postbus_data.left_behind as enum ()",
        "sequence": "alter sequence postbus_data.stream_id_seq cache 7",
        "trigger": """create trigger meddle before update on postbus_data.stream
            for each row execute function suppress_redundant_updates_trigger()""",
        "schema": "grant usage on schema postbus to public",
    }
    for kind, change in changes.items():
        before = catalog(fresh_url)
        with psycopg.connect(fresh_url) as connection:
            execute(connection, change)

        assert kind in {thing[0] for thing in differences(before, catalog(fresh_url))}


async def connected(connect: Any, url: str) -> None:
    """Connect by either twin."""
    answer = connect(url)
    if inspect.isawaitable(answer):
        await answer


def run_script(url: str, script: Path) -> None:
    command = [
        binaries.find().program("psql"),
        "--no-psqlrc",
        "--quiet",
        "-v",
        "ON_ERROR_STOP=1",
        "-f",
        str(script),
        url,
    ]
    subprocess.run(command, check=True, capture_output=True)


def execute(connection: psycopg.Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []


def offered(connection: psycopg.Connection[Any]) -> dict[str, set[str]]:
    """The public functions, and the names of what they take and return."""
    rows = execute(
        connection,
        """select p.proname, coalesce(p.proargnames, '{}')
        from pg_proc as p
        where p.pronamespace = 'postbus'::regnamespace""",
    )
    found: dict[str, set[str]] = {}
    for name, arguments in rows:
        found.setdefault(name, set()).update({name, *arguments})
    return found


def waiting_count(connection: psycopg.Connection[Any]) -> int:
    ((count,),) = execute(
        connection,
        """select count(*) from pg_locks as l join pg_database as d on d.oid = l.database
        where d.datname = current_database() and l.locktype = 'advisory' and not l.granted""",
    )
    return int(count)


def names(steps: list[migrations.Step]) -> list[str]:
    return [step.name for step in steps]
