"""Publishing inside the caller's own transaction."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


def data_of(bus: postbus.Bus, stream: str) -> list[Any]:
    return [message.data for message in bus.scan(stream)]


@pytest.fixture
def plain(url: str, name: str) -> Any:
    """A sync bus and a stream on it."""
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        yield bus


def test_a_message_appears_when_the_callers_transaction_commits(plain: postbus.Bus, name: str, connect: Any) -> None:
    connection = connect(autocommit=False)
    plain.publish(name, data=1, connection=connection)
    plain.publish_many(name, [Message(data=2), Message(data=3)], connection=connection)
    assert data_of(plain, name) == []

    connection.commit()
    assert data_of(plain, name) == [1, 2, 3]


def test_a_message_disappears_with_the_callers_rollback(plain: postbus.Bus, name: str, connect: Any) -> None:
    connection = connect(autocommit=False)
    plain.publish(name, data=1, connection=connection)
    connection.rollback()
    plain.publish(name, data=2, connection=connection)
    connection.commit()

    assert data_of(plain, name) == [2]


def test_a_rollback_to_a_savepoint_takes_only_what_came_after_it(plain: postbus.Bus, name: str, connect: Any) -> None:
    connection = connect(autocommit=False)
    plain.publish(name, data="before", connection=connection)
    connection.execute("savepoint here")
    plain.publish(name, data="taken back", connection=connection)
    connection.execute("rollback to savepoint here")
    plain.publish(name, data="after", connection=connection)
    connection.commit()

    assert data_of(plain, name) == ["before", "after"]


def test_the_first_publish_of_a_savepoint_that_is_rolled_back_leaves_the_next_one_protected(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    """The lock goes with the savepoint, so what remembers it must go too."""
    connection = connect(autocommit=False)
    connection.execute("savepoint here")
    plain.publish(name, data="taken back", connection=connection)
    connection.execute("rollback to savepoint here")
    plain.publish(name, data="late", connection=connection)
    plain.publish(name, data="early")

    assert data_of(plain, name) == []  # Nobody may pass the open publisher.
    connection.commit()
    assert data_of(plain, name) == ["late", "early"]


def test_ten_thousand_publishes_of_a_transaction_take_one_lock(
    plain: postbus.Bus, name: str, sql: Any, connect: Any
) -> None:
    connection = connect(autocommit=False)
    with postbus.connect(plain.url) as other:
        other.create_stream(f"{name}-2")
    connection.execute(
        "select postbus.publish(%s, data => '1'), postbus.publish(%s, data => '1') from generate_series(1, 5000)",
        (name, f"{name}-2"),
    )
    held = sql.execute(
        "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and pid = %s",
        (connection.info.backend_pid,),
    ).fetchone()
    assert held == (2,)


def test_a_failed_publish_fails_the_callers_transaction_and_not_the_bus(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    connection = connect(autocommit=False)
    with pytest.raises(postbus.InvalidInput):
        plain.publish(name, key="a b", data=1, connection=connection)
    connection.rollback()

    plain.publish(name, data=2, connection=connection)
    connection.commit()
    assert data_of(plain, name) == [2]


def test_the_callers_row_factory_and_cursor_are_left_alone(plain: postbus.Bus, name: str, connect: Any) -> None:
    connection = connect(row_factory=psycopg.rows.dict_row, cursor_factory=psycopg.ClientCursor)
    plain.publish_many(name, [Message(key="k", data=1)], connection=connection)

    assert connection.execute("select 1 as one").fetchone() == {"one": 1}
    assert data_of(plain, name) == [1]


def test_a_stream_made_in_a_transaction_can_be_used_in_it(plain: postbus.Bus, name: str, connect: Any) -> None:
    connection = connect(autocommit=False)
    plain.create_stream(f"{name}-new", connection=connection)
    plain.publish(f"{name}-new", data=1, connection=connection)
    connection.rollback()
    with pytest.raises(postbus.NotFound):
        plain.publish(f"{name}-new", data=2)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_publisher_may_use_any_isolation_level(plain: postbus.Bus, name: str, connect: Any, level: str) -> None:
    connection = connect(autocommit=False)
    connection.execute(f"set transaction isolation level {level}")
    plain.publish(name, data=1, connection=connection)
    connection.commit()

    assert data_of(plain, name) == [1]


def test_a_prepared_transaction_publishes_when_it_is_committed(
    plain: postbus.Bus, name: str, connect: Any, sql: Any
) -> None:
    if sql.execute("show max_prepared_transactions").fetchone() == ("0",):
        pytest.skip("this server allows no prepared transactions")
    connection = connect(autocommit=False)
    plain.publish(name, data="prepared", connection=connection)
    connection.execute(f"prepare transaction '{name}'")
    connection.close()
    plain.publish(name, data="other")
    try:
        assert data_of(plain, name) == []
        (holder,) = plain.horizon_holders(name)
        assert holder.prepared_transaction == name
    finally:
        sql.execute(f"commit prepared '{name}'")
    assert data_of(plain, name) == ["prepared", "other"]


def test_sqlalchemy_publishes_in_its_own_session(plain: postbus.Bus, name: str) -> None:
    from sqlalchemy import create_engine, text
    from sqlalchemy.orm import Session

    engine = create_engine(plain.url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        session.execute(text("select postbus.publish(:stream, :key, :data)"), {"stream": name, "key": "k", "data": "1"})
        session.rollback()
        session.execute(text("select postbus.publish(:stream, :key, :data)"), {"stream": name, "key": "k", "data": "2"})
        session.commit()
    engine.dispose()

    assert data_of(plain, name) == [2]
