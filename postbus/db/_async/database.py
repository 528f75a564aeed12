"""A pool of connections to one Postgres, and the one way in which the library calls it."""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from math import ceil
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import psycopg
import psycopg_pool
from psycopg.rows import tuple_row

from postbus.db import array_dumpers, migrations, statements
from postbus.db._async.connection import AsyncPreparedConnection, Rows
from postbus.db._async.own_connection import driver_connection
from postbus.db.errors import shown_cause, translate
from postbus.db.own_connections import AsyncOwnConnection
from postbus.model.errors import ConnectionLost, Error, InvalidInput

Connection = psycopg.AsyncConnection[Any]
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


async def in_thread(
    function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Run something that blocks without stopping the event loop."""
    return await asyncio.to_thread(function, *args, **kwargs)


class AsyncDatabase:
    """A pool of autocommit connections.

    A connection that died while it was idle is replaced before it is used, so a restart of Postgres between two calls goes
    unnoticed. One that dies during a call raises `ConnectionLost`, unless the call can be repeated without harm.

    Works behind poolers in transaction mode: nothing is kept in a session, and where the server is not the one that answered
    the connect, statements are not prepared (an old PgBouncer loses them).
    """

    def __init__(self, url: str, *, pool_size: int = 10, connect_timeout: float = 30) -> None:
        self.url = url
        # A server that accepts a connection and never answers would be waited for, for minutes.
        self._patience: dict[str, Any] = (
            {} if "connect_timeout" in url else {"connect_timeout": max(2, ceil(connect_timeout))}
        )
        self._is_asking = False
        # When the server was started that the newest connection in use leads to.
        self.server_started_at: datetime | None = None
        # Connections that flush in the background, and how many more there may be.
        self._flushing: list[AsyncPreparedConnection] = []
        self._spare = threading.Semaphore(pool_size // 2)
        self._pool: psycopg_pool.AsyncConnectionPool[AsyncPreparedConnection] = psycopg_pool.AsyncConnectionPool(
            url,
            connection_class=AsyncPreparedConnection,
            min_size=0,
            max_size=pool_size,
            timeout=connect_timeout,
            reconnect_timeout=connect_timeout,
            kwargs={"autocommit": True, "client_encoding": "UTF8", **self._patience},
            configure=configure,
            open=False,
            name="postbus",
        )

    async def open(self) -> None:
        """Make the first connection, so that a wrong URL fails here with a clear error."""
        try:
            async with await psycopg.AsyncConnection.connect(self.url, autocommit=True, **self._patience):
                pass
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        await self._pool.open()

    async def close(self) -> None:
        while self._flushing:
            with suppress(Error, IndexError):
                await self.await_flush(self._flushing[0])
        await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def check_installed(self) -> None:
        """Refuse a database without Postbus, or with another version of it.

        Raises:
            MigrationDue: The hint says what to do.
        """
        ((installed,),) = await self.rows(migrations.IS_INSTALLED, repeatable=True)
        state: tuple[Any, ...] = (0, None)
        if installed:
            (state,) = await self.rows(migrations.STATE, repeatable=True)
        migrations.check(migrations.InstalledState(*state))

    async def rows(
        self,
        statement: str,
        parameters: Sequence[Any] = (),
        *,
        connection: AsyncOwnConnection | None = None,
        repeatable: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows.

        Args:
            statement: One of `postbus.db.statements`, with parameters $1, $2, ….
            parameters: Its parameters.
            connection: The caller's own connection, to take part in its transaction: of psycopg, or of SQLAlchemy over psycopg.
                Without it, one of the pool.
            repeatable: Running it twice does no harm, so it is repeated once if the connection is lost.

        Raises:
            postbus.Error: Any error of Postgres or the driver.
            TypeError: The caller's connection is none that can be used.
        """
        if connection is not None:
            return await _run_on_callers(connection, statement, parameters)
        found: Rows
        try:
            found = await self._on_pooled(AsyncPreparedConnection.fetch, statement, parameters)
        except ConnectionLost:
            if not repeatable:
                raise
            found = await self._on_pooled(AsyncPreparedConnection.fetch, statement, parameters)
        return found

    async def fetch_decoded(
        self, load: Callable[[Rows], _Result], statement: str, parameters: Sequence[Any]
    ) -> _Result:
        """Run one statement and decode its rows while the server commits.

        Raises:
            postbus.Error: As `rows`.
        """
        result: _Result = await self._on_pooled(AsyncPreparedConnection.fetch_decoded, load, statement, parameters)
        return result

    async def flush(
        self, previous: AsyncPreparedConnection | None, since: datetime | None
    ) -> AsyncPreparedConnection | None:
        """Have everything committed so far written to disk, without waiting for it.

        Args:
            previous: The result of the previous call, whose flush is awaited.
            since: When the server was started that has committed it. One that was started later may have lost it in a crash.

        Returns:
            The connection that flushes, for `await_flush`. None if it is done: a small pool has no connection to spare.

        Raises:
            ConnectionLost: The server was restarted since.
            postbus.Error: The flush cannot be started, or the previous one failed.
        """
        if previous is not None and not self._reclaim(previous):
            await self._finish(previous)
            previous = None
        connection = previous or await self._flusher()
        if connection is None:
            await self.rows(statements.FLUSH)
        else:
            await self._on(connection, AsyncPreparedConnection.start, statements.FLUSH)
        if self.server_started_at != since:
            raise ConnectionLost("Postgres was restarted before a commit was flushed", "it may have been undone")
        return connection

    async def _flusher(self) -> AsyncPreparedConnection | None:
        """A connection for flushing, unless half of the pool is flushing already."""
        if not self._spare.acquire(blocking=False):
            # One of them may be done. If it failed, its user gets the error.
            with suppress(Error, IndexError):
                await self.await_flush(self._flushing[0])
            if not self._spare.acquire(blocking=False):
                return None
        try:
            connection = await self._checkout()
        except BaseException:
            self._spare.release()
            raise
        connection.is_flusher = True
        return connection

    async def await_flush(self, connection: AsyncPreparedConnection) -> None:
        """Wait for a flush, and return its connection to the pool.

        Raises:
            postbus.Error: It failed.
        """
        is_free = self._reclaim(connection)
        try:
            await self._finish(connection)
        finally:
            if is_free:
                await self._checkin(connection)

    async def _finish(self, connection: AsyncPreparedConnection) -> None:
        try:
            await connection.finish()
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def _reclaim(self, connection: AsyncPreparedConnection) -> bool:
        """Reclaim a flushing connection; False if another call has reclaimed it."""
        try:
            self._flushing.remove(connection)
        except ValueError:
            return False
        return True

    async def _on_pooled(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return await self._on(await self._checkout(), method, *arguments)

    async def _on(self, connection: AsyncPreparedConnection, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await method(connection, *arguments)
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)
        finally:
            await self._checkin(connection)

    async def _checkout(self) -> AsyncPreparedConnection:
        """A live connection of the pool."""
        try:
            # The pool's own check would pause between two dead connections.
            while not _is_alive(pooled := await self._pool.getconn()):
                await pooled.close()
                await self._pool.putconn(pooled)
        except psycopg_pool.PoolTimeout as error:
            raise translate(await self._why_unreachable(error), under_way=False) from error
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        if self.server_started_at is None or pooled.server_started_at > self.server_started_at:
            self.server_started_at = pooled.server_started_at
        return pooled

    async def _checkin(self, connection: AsyncPreparedConnection) -> None:
        if connection.has_pending_result and not connection.closed:
            self._flushing.append(connection)
            return
        if connection.is_flusher:
            connection.is_flusher = False
            self._spare.release()
        await self._pool.putconn(connection)

    async def _why_unreachable(self, timeout: psycopg_pool.PoolTimeout) -> Exception:
        """Find out why the pool has no connection, by one attempt that all callers share. The pool only reports a timeout."""
        if self._is_asking:
            return timeout
        self._is_asking = True
        try:
            async with await psycopg.AsyncConnection.connect(self.url, connect_timeout=2):
                return timeout
        except psycopg.Error as error:
            return error
        finally:
            self._is_asking = False


async def _run_on_callers(own: AsyncOwnConnection, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    connection = await driver_connection(own)
    if connection.pgconn.parameter_status(b"client_encoding") != b"UTF8":
        raise InvalidInput(
            "the client_encoding of your connection is not UTF8", "set client_encoding to UTF8 before publishing"
        )
    array_dumpers.register(connection)
    try:
        # Not connection.cursor(): the caller may have chosen another cursor class or row factory.
        async with psycopg.AsyncRawCursor(connection, row_factory=tuple_row) as cursor:
            # Unprepared: the connection may lead through a pooler that loses prepared statements.
            await cursor.execute(statement.encode(), parameters, prepare=False)
            return await cursor.fetchall()
    except psycopg.Error as error:
        raise translate(error) from shown_cause(error)


async def configure(connection: AsyncPreparedConnection) -> None:
    """Give a new connection the settings of the library's own sessions, where it leads to one session."""
    cursor = await connection.execute("select pg_backend_pid(), pg_postmaster_start_time()")
    row = await cursor.fetchone()
    if row is not None:
        connection.server_started_at = row[1]
    if row is not None and row[0] != connection.info.backend_pid:
        # Behind a pooler in transaction mode, where sessions are shared.
        connection.keeps_statements = False
        connection.prepare_threshold = None
    else:
        await connection.execute(statements.SESSION_SETTINGS)


def _is_alive(connection: AsyncPreparedConnection) -> bool:
    """Whether an idle connection is still alive. Nothing should arrive on it, so a readable one is suspect.

    This is one system call; a round trip to the server would double the cost of a small call.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
