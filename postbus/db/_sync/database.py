# Generated from postbus/db/_async/database.py by `make generate`; edit that file.

"""A pool of connections to one Postgres, and the one way in which the library calls it."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import psycopg
import psycopg_pool
from psycopg.rows import tuple_row

from postbus.db import arrays, migrations, statements
from postbus.db._sync.connection import LeanConnection, Rows
from postbus.db.errors import translate
from postbus.model.errors import ConnectionLost, Error, InvalidInput

Connection = psycopg.Connection[Any]
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def in_thread(
    function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Run something that blocks."""
    return function(*args, **kwargs)


class Database:
    """A pool of autocommit connections.

    A connection that died while it was idle is replaced before it is used, so a restart of Postgres between two calls goes
    unnoticed. One that dies during a call raises `ConnectionLost`, unless the call can be repeated without harm.

    Works behind poolers in transaction mode: nothing is kept in a session, and where the server is not the one that answered
    the connect, statements are not prepared (an old PgBouncer loses them).
    """

    def __init__(self, url: str, *, pool_size: int = 10, connect_timeout: float = 30) -> None:
        self.url = url
        self._is_asking = False
        # Connections that flush what others have committed, and that nobody waits for; and how many more of them there may be.
        self._flushing: list[LeanConnection] = []
        self._spare = [None] * (pool_size // 2)
        self._pool: psycopg_pool.ConnectionPool[LeanConnection] = psycopg_pool.ConnectionPool(
            url,
            connection_class=LeanConnection,
            min_size=0,
            max_size=pool_size,
            timeout=connect_timeout,
            reconnect_timeout=connect_timeout,
            kwargs={"autocommit": True, "client_encoding": "UTF8"},
            configure=_configure,
            open=False,
            name="postbus",
        )

    def open(self) -> None:
        """Make the first connection, so that a wrong URL is an error here and says why."""
        try:
            with psycopg.Connection.connect(self.url, autocommit=True):
                pass
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        self._pool.open()

    def close(self) -> None:
        while self._flushing:
            with suppress(Error, IndexError):
                self.settle(self._flushing[0])
        self._pool.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check_installed(self) -> None:
        """Refuse a database without Postbus, or with another version of it.

        Raises:
            MigrationDue: The hint says what to do.
        """
        ((installed,),) = self.rows(migrations.IS_INSTALLED, repeatable=True)
        state: tuple[Any, ...] = (0, None)
        if installed:
            (state,) = self.rows(migrations.STATE, repeatable=True)
        migrations.check(migrations.InstalledState(*state))

    def rows(
        self,
        statement: str,
        parameters: Sequence[Any] = (),
        *,
        connection: Connection | None = None,
        repeatable: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows.

        Args:
            statement: One of `postbus.db.statements`, with parameters $1, $2, ….
            parameters: Its parameters.
            connection: The caller's own connection, to take part in its transaction; else one of the pool's.
            repeatable: Running it twice does no harm: try once more when the connection is lost on the way.

        Raises:
            postbus.Error: Whatever Postgres or the driver raised, translated.
        """
        if connection is not None:
            return _run_on_callers(connection, statement, parameters)
        found: Rows
        try:
            found = self._on_pooled(LeanConnection.fetch, statement, parameters)
        except ConnectionLost:
            if not repeatable:
                raise
            found = self._on_pooled(LeanConnection.fetch, statement, parameters)
        return found

    def loaded(self, load: Callable[[Rows], _Result], statement: str, parameters: Sequence[Any]) -> _Result:
        """Run one statement and make something of its rows, while the server commits.

        Raises:
            postbus.Error: As `rows`.
        """
        result: _Result = self._on_pooled(LeanConnection.fetch_as, load, statement, parameters)
        return result

    def flush(self, previous: LeanConnection | None) -> LeanConnection | None:
        """Have all that was committed up to now written to disk, and do not wait for it.

        Args:
            previous: What the call before returned; that flush is waited for.

        Returns:
            The connection that does it, for `settle`. None if it is done: a small pool has no connection to spare.

        Raises:
            postbus.Error: It cannot be asked for, or the one before failed.
        """
        if previous is not None and not self._retake(previous):
            self._settle(previous)
            previous = None
        connection = previous or self._flusher()
        if connection is None:
            self.rows(statements.FLUSH)
        else:
            self._on(connection, LeanConnection.start, statements.FLUSH)
        return connection

    def _flusher(self) -> LeanConnection | None:
        """A connection to flush by, unless half of the pool does so already."""
        if not self._spare:
            # One of them may be done. Who asked for it is told if it failed.
            with suppress(Error, IndexError):
                self.settle(self._flushing[0])
        try:
            self._spare.pop()
        except IndexError:
            return None
        try:
            connection = self._taken()
        except BaseException:
            self._spare.append(None)
            raise
        connection.is_flusher = True
        return connection

    def settle(self, connection: LeanConnection) -> None:
        """Wait for a flush, and let others have its connection.

        Raises:
            postbus.Error: It failed.
        """
        is_free = self._retake(connection)
        try:
            self._settle(connection)
        finally:
            if is_free:
                self._put(connection)

    def _settle(self, connection: LeanConnection) -> None:
        try:
            connection.settle()
        except psycopg.Error as error:
            raise translate(error) from error

    def _retake(self, connection: LeanConnection) -> bool:
        """Take a connection that flushes, unless somebody else has done so."""
        try:
            self._flushing.remove(connection)
        except ValueError:
            return False
        return True

    def _on_pooled(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return self._on(self._taken(), method, *arguments)

    def _on(self, connection: LeanConnection, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(connection, *arguments)
        except psycopg.Error as error:
            raise translate(error) from error
        finally:
            self._put(connection)

    def _taken(self) -> LeanConnection:
        """A connection of the pool that is alive."""
        try:
            # The pool's own check would pause between two that are not alive.
            while not _is_alive(pooled := self._pool.getconn()):
                pooled.close()
                self._pool.putconn(pooled)
        except psycopg_pool.PoolTimeout as error:
            raise translate(self._why_unreachable(error), under_way=False) from error
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        return pooled

    def _put(self, connection: LeanConnection) -> None:
        if connection.is_ahead and not connection.closed:
            self._flushing.append(connection)
            return
        if connection.is_flusher:
            connection.is_flusher = False
            self._spare.append(None)
        self._pool.putconn(connection)

    def _why_unreachable(self, timeout: psycopg_pool.PoolTimeout) -> Exception:
        """The pool only says that time ran out; one attempt of our own says what is wrong. One for all who want to know."""
        if self._is_asking:
            return timeout
        self._is_asking = True
        try:
            with psycopg.Connection.connect(self.url, connect_timeout=2):
                return timeout
        except psycopg.Error as error:
            return error
        finally:
            self._is_asking = False


def _run_on_callers(connection: Connection, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    if connection.pgconn.parameter_status(b"client_encoding") != b"UTF8":
        raise InvalidInput(
            "the client_encoding of your connection is not UTF8", "set client_encoding to UTF8 before publishing"
        )
    arrays.register(connection)
    try:
        # Not connection.cursor(): the caller may have chosen another cursor class or row factory.
        with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
            # Unprepared: the connection may lead through a pooler that loses prepared statements.
            cursor.execute(statement.encode(), parameters, prepare=False)
            return cursor.fetchall()
    except psycopg.Error as error:
        raise translate(error) from error


def _configure(connection: LeanConnection) -> None:
    cursor = connection.execute("select pg_backend_pid()")
    row = cursor.fetchone()
    if row is not None and row[0] != connection.info.backend_pid:
        # Behind a pooler in transaction mode, where a session is anybody's.
        connection.keeps_statements = False
        connection.prepare_threshold = None
    else:
        connection.execute(statements.SESSION_SETTINGS)


def _is_alive(connection: LeanConnection) -> bool:
    """Whether a connection did not die while it was idle: an idle one has nothing to say, so a readable one is suspect.

    One system call, where asking the server would double the cost of a small call.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
