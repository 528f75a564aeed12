"""`connection=` takes what SQLAlchemy users have: connections and sessions, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import postbus

pytestmark = pytest.mark.newest_server


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    await engine.dispose()


@pytest.fixture
def plain(url: str, name: str) -> Iterator[postbus.Bus]:
    with postbus.connect(url) as bus:
        bus.create_queue(name, exist_ok=True)
        yield bus


@pytest.fixture
async def plain_async(url: str, name: str) -> AsyncIterator[postbus.AsyncBus]:
    async with await postbus.connect_async(url) as bus:
        await bus.create_queue(name, exist_ok=True)
        yield bus


def _data(bus: postbus.Bus, stream: str) -> list[Any]:
    return [message.data for message in bus.scan(stream)]


@pytest.mark.parametrize("kind", ["connection", "session", "scoped session"])
def test_a_message_commits_and_rolls_back_with_sqlalchemy(
    plain: postbus.Bus, name: str, engine: Engine, kind: str
) -> None:
    openers: dict[str, Any] = {
        "connection": engine.connect,
        "session": lambda: Session(engine),
        "scoped session": lambda: scoped_session(sessionmaker(engine)),
    }
    opened = openers[kind]()

    plain.publish(name, data="undone", connection=opened)
    opened.rollback()
    plain.publish(name, data=1, connection=opened)
    plain.publish_many(name, [postbus.Message(data=2)], connection=opened)
    assert _data(plain, name) == []
    opened.commit()
    assert _data(plain, name) == [1, 2]
    opened.close()


def test_a_block_of_sqlalchemy_commits_an_ack_together_with_a_publish(
    plain: postbus.Bus, name: str, engine: Engine
) -> None:
    queue = plain.queue(name)
    queue.publish(1)
    batch = queue.receive()
    with engine.begin() as connection:
        assert queue.ack(batch, connection=connection) == 1
        queue.publish(2, connection=connection)
        assert queue.stats().in_flight == 1

    assert queue.stats().in_flight == 0
    with Session(engine) as session, session.begin():
        (second,) = queue.receive(connection=session)
        assert second.data == 2
        assert queue.ack(second, connection=session) == 1
    assert queue.receive() == postbus.Batch(())


@pytest.mark.parametrize("kind", ["connection", "session", "scoped session"])
async def test_a_message_commits_and_rolls_back_with_async_sqlalchemy(
    plain_async: postbus.AsyncBus, name: str, async_engine: AsyncEngine, kind: str
) -> None:
    if kind == "connection":
        opened: Any = await async_engine.connect()
    elif kind == "session":
        opened = AsyncSession(async_engine)
    else:
        opened = async_scoped_session(async_sessionmaker(async_engine), scopefunc=lambda: 1)

    await plain_async.publish(name, data="undone", connection=opened)
    await opened.rollback()
    await plain_async.publish(name, data=1, connection=opened)
    assert not await plain_async.read(name)
    await opened.commit()
    assert [message.data for message in await plain_async.read(name)] == [1]
    await opened.close()


async def test_other_connections_are_refused_with_the_type_that_is_wanted(
    plain: postbus.Bus, plain_async: postbus.AsyncBus, engine: Engine, async_engine: AsyncEngine, url: str
) -> None:
    stream = (await plain_async.list_streams())[0].name
    other = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    with engine.connect() as connection:
        async with async_engine.connect() as async_connection, other.connect() as of_asyncpg:
            for wrong in (async_connection, engine, "connection", object()):
                with pytest.raises(TypeError, match=r"takes a psycopg\.Connection, or .* not "):
                    plain.publish(stream, data=1, connection=wrong)  # type: ignore[arg-type]
            for wrong in (connection, async_engine, of_asyncpg):
                with pytest.raises(TypeError, match=r"takes a psycopg\.AsyncConnection, or .* not "):
                    await plain_async.publish(stream, data=1, connection=wrong)  # type: ignore[arg-type]
    await other.dispose()
