"""Readers never pass a publisher that is still open, and publishers never wait for each other."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import psycopg
import pytest

import postbus
from tests import servers


@pytest.fixture
def plain(url: str, name: str) -> Any:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=2)
        yield bus


def publish(connection: psycopg.Connection[Any], stream: str, data: str) -> int:
    row = connection.execute("select postbus.publish(%s, 'k', %s)", (stream, data)).fetchone()
    assert row is not None
    seq: int = row[0]
    return seq


def read_twice_around_a_late_commit(url: str, stream: str) -> list[str]:
    """A reader that remembers how far it came, while the first of two publishers commits last."""
    with psycopg.connect(url) as slow, psycopg.connect(url) as fast, psycopg.connect(url, autocommit=True) as reader:
        publish(slow, stream, '"slow"')
        publish(fast, stream, '"fast"')
        fast.commit()
        seen, resume = [], None
        for commit in (slow.commit, lambda: None):
            rows = reader.execute(
                "select data, resume from postbus.read(%s, resume => %s)", (stream, resume)
            ).fetchall()
            seen += [row[0] for row in rows]
            resume = rows[-1][1] if rows else resume
            commit()
        return seen


def test_a_message_that_commits_late_is_not_skipped(url: str, plain: postbus.Bus, name: str) -> None:
    assert read_twice_around_a_late_commit(url, name) == ['"slow"', '"fast"']


def test_without_the_horizon_lock_a_message_is_lost(server: servers.Server) -> None:
    """The guarantee above rests on the lock: the same steps without it lose the late message for ever."""
    source = files("postbus.sql").joinpath("functions/horizon/internal/lock_horizon.sql").read_text()
    unlocked = re.sub(r"if not pg_try_advisory_xact_lock_shared\(.*? then", "if false then", source, flags=re.S)
    assert unlocked != source
    with servers.database(server.url) as url:
        with psycopg.connect(url) as connection:
            connection.execute("select postbus.create_stream('s')")
            connection.execute(unlocked.encode())
        assert read_twice_around_a_late_commit(url, "s") == ['"fast"']


def test_publishers_do_not_wait_for_an_open_publisher(plain: postbus.Bus, name: str, connect: Any) -> None:
    open_publisher = connect(autocommit=False)
    publish(open_publisher, name, "1")
    other = connect()
    other.execute("set lock_timeout = '1s'")

    for n in range(10):
        publish(other, name, str(n))
    open_publisher.rollback()
    assert [message.data for message in plain.scan(name)] == list(range(10))


def test_an_open_publisher_of_one_stream_holds_no_other(plain: postbus.Bus, name: str, connect: Any) -> None:
    plain.create_stream(f"{name}-2")
    publish(connect(autocommit=False), name, "1")
    plain.publish(f"{name}-2", data=1)

    assert len(plain.read(f"{name}-2")) == 1


def test_the_horizon_of_an_unused_stream_is_0_and_its_first_message_is_not_passed(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    assert plain.horizon(name) == 0
    first = connect(autocommit=False)
    assert publish(first, name, '"first"') == 1
    plain.publish(name, data="second")
    assert plain.horizon(name) == 0

    first.commit()
    assert plain.horizon(name) == 2


def test_horizon_holders_are_listed_with_how_long_they_hold_it(plain: postbus.Bus, name: str, connect: Any) -> None:
    plain.publish(name, data=0)
    assert plain.horizon_holders(name) == []
    oldest = connect(autocommit=False, application_name="nightly import")
    publish(oldest, name, "1")
    publish(connect(autocommit=False), name, "2")

    first, second = plain.horizon_holders(name)
    assert (first.pid, first.application_name, first.state) == (
        oldest.info.backend_pid,
        "nightly import",
        "idle in transaction",
    )
    assert first.held_at_seq == plain.horizon(name) == 1
    assert second.held_at_seq == 2
    assert first.held_for is not None
    assert first.held_for.total_seconds() > 0


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_reading_under_a_kept_snapshot_is_refused(plain: postbus.Bus, name: str, connect: Any, level: str) -> None:
    """There, a message numbered before the snapshot but committed after it would be skipped for ever."""
    reader = connect(autocommit=False)
    reader.execute(f"set transaction isolation level {level}")
    with pytest.raises(psycopg.Error, match=f"{level.upper()} transaction") as caught:
        reader.execute("select * from postbus.read(%s)", (name,))
    assert caught.value.sqlstate == "PB412"


def test_a_database_that_defaults_to_another_isolation_level_can_be_read(server: servers.Server) -> None:
    with servers.database(server.url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "do $$ begin execute format('alter database %I set default_transaction_isolation = "
                "''serializable''', current_database()); end $$"
            )
        with postbus.connect(url) as bus:
            bus.create_stream("s")
            bus.publish("s", data=1)
            assert len(bus.read("s")) == 1


def test_a_lock_in_another_database_does_not_hold_the_horizon(
    server: servers.Server, plain: postbus.Bus, name: str
) -> None:
    plain.publish(name, data=1)
    info = plain.stream_info(name)
    with servers.database(server.url, install=False) as other, psycopg.connect(other) as connection:
        connection.execute("select pg_advisory_xact_lock_shared(1073741824 + %s, 0)", (info.id,))
        assert plain.horizon(name) == 1


def test_other_kinds_of_advisory_locks_do_not_hold_the_horizon(plain: postbus.Bus, name: str, connect: Any) -> None:
    plain.publish(name, data=1)
    info = plain.stream_info(name)
    other = connect(autocommit=False)
    other.execute("select pg_advisory_xact_lock(1073741824 + %s, 0)", (info.id,))
    other.execute("select pg_advisory_xact_lock_shared(((1073741824 + %s)::bigint << 32) + 0)", (info.id,))
    assert plain.horizon(name) == 1


@pytest.mark.parametrize("start", [2**31 - 3, 2**32 - 3, 5 * 2**32 - 3, 2**53 - 3])
def test_the_horizon_passes_the_wrap_of_lock_keys(
    plain: postbus.Bus, name: str, connect: Any, sql: Any, start: int
) -> None:
    info = plain.stream_info(name)
    sql.execute(f"select setval('postbus_data.seq_{info.id}', {start})")
    for n in range(6):
        open_publisher = connect(autocommit=False)
        publish(open_publisher, name, '"late"')
        plain.publish(name, data="early")
        assert plain.horizon(name) == start + 2 * n
        open_publisher.commit()
    assert plain.horizon(name) == start + 12


def test_an_unpublished_open_transaction_does_not_hold_the_horizon(plain: postbus.Bus, name: str, connect: Any) -> None:
    idle = connect(autocommit=False)
    idle.execute("select pg_current_xact_id()")
    plain.publish(name, data=1)
    assert plain.horizon(name) == 1


def test_a_stale_session_setting_does_not_stand_for_the_lock(plain: postbus.Bus, name: str, connect: Any) -> None:
    info = plain.stream_info(name)
    publisher = connect(autocommit=False)
    publisher.execute("select set_config('postbus.entered', %s, false)", (f"123:{info.id}:",))
    publisher.commit()
    publish(publisher, name, '"late"')
    plain.publish(name, data="early")

    assert [m.data for m in plain.read(name)] == []
    publisher.commit()
    assert [m.data for m in plain.read(name)] == ["late", "early"]


@pytest.mark.parametrize("own", ["publish_{}('k', '1', null)", "publish_many_{}('{{k}}', '{{1}}', null)"])
@pytest.mark.parametrize("before", ["", "select pg_current_xact_id();", "savepoint s; select {}; rollback to s;"])
def test_a_streams_own_publisher_holds_the_horizon_until_its_transaction_ends(
    plain: postbus.Bus, name: str, connect: Any, own: str, before: str
) -> None:
    call = "postbus_data." + own.format(plain.stream_info(name).id)
    publisher = connect(autocommit=False)
    publisher.execute(f"{before.format(call)} select {call}")
    at = plain.horizon(name)
    plain.publish(name, data="early")
    publisher.execute(f"select {call}")

    assert plain.horizon(name) == at
    assert list(plain.read(name)) == []
    publisher.commit()
    assert [message.data for message in plain.read(name)] == [1, "early", 1]


def test_a_streams_own_publisher_does_not_publish_without_the_lock(
    plain: postbus.Bus, name: str, connect: Any, sql: Any
) -> None:
    plain.publish(name, data=1)
    info = plain.stream_info(name)
    connect(autocommit=False).execute(
        "select pg_advisory_xact_lock(postbus_data.publisher_lock_class(%s), postbus_data.publisher_lock_key(1))",
        (info.id,),
    )

    with pytest.raises(psycopg.Error, match="another application holds an advisory lock"):
        sql.execute(f"select postbus_data.publish_{info.id}('k', '2', null)")
