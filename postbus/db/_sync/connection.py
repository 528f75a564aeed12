# Generated from postbus/db/_async/connection.py by `make generate`; edit that file.

"""A pooled connection that runs prepared statements without a cursor.

A cursor takes a statement apart, adapts each value by its type, keeps state for fetching: half of what a small call costs the
client. Here a statement is prepared once for each connection and then sent with its parameters. 83 µs became 48 µs of the
client's time for a small call (docs/decisions/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
import psycopg.abc
from psycopg import generators
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from postbus.db import parameters as encoding
from postbus.db import statements
from postbus.db.errors import is_passing

Rows = list[tuple[Any, ...]]
_Loaded = TypeVar("_Loaded")
_WENT_WELL: Final = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.PIPELINE_SYNC)


class PreparedConnection(psycopg.Connection[Any]):
    """A connection with `fetch`. The pool ensures that it has one user at a time."""

    _names: dict[str, bytes] | None = None
    _prepared_count = 0
    _transformer: psycopg.abc.Transformer | None = None
    keeps_statements = True
    """Whether the server remembers prepared statements. Not so behind a pooler in transaction mode."""
    has_pending_result = False
    """Whether a statement was sent and its result not yet read."""
    is_flusher = False
    # When its server was started.
    server_started_at: Any = None
    """Whether it is one of those that flush; see `AsyncDatabase.flush`."""

    def fetch(self, statement: str, parameters: Sequence[Any]) -> Rows:
        """Run a statement with parameters $1, $2, … and return its rows."""
        return self._run(self._fetch, statement, parameters)

    def fetch_decoded(self, load: Callable[[Rows], _Loaded], statement: str, parameters: Sequence[Any]) -> _Loaded:
        """The same, but decodes rows while the server commits, which pays for many rows.

        It returns after the commit, so its result is as durable as that of `fetch`.
        """
        if not self.keeps_statements:
            return load(self.fetch(statement, parameters))
        return self._run(partial(self._fetch_early, load), statement, parameters)

    def start(self, statement: str) -> None:
        """Send a statement without waiting for its result. `finish`, or the next `start`, waits for it."""
        if not self.keeps_statements:
            self.fetch(statement, ())
            return
        self._run(self._start, statement, ())

    def finish(self) -> None:
        """Wait for the result of the statement that was started."""
        if self.has_pending_result:
            with self.lock:
                try:
                    self.wait(self._finish())
                except BaseException:
                    self.close()
                    raise

    def _run(self, fetch: Callable[..., Generator[Any, Any, _Loaded]], statement: str, parameters: Any) -> _Loaded:
        values, formats = encoding.encode(parameters)
        with self.lock:
            try:
                return self._attempt(fetch, statement, values, formats)
            except BaseException:
                if self.has_pending_result:
                    # A late result would be mistaken for that of another statement.
                    self.close()
                raise

    def _attempt(
        self,
        fetch: Callable[..., Generator[Any, Any, _Loaded]],
        statement: str,
        values: list[bytes | None],
        formats: list[int],
    ) -> _Loaded:
        try:
            return self.wait(fetch(statement, values, formats))
        except psycopg.Error as error:
            if not is_passing(error) or self.pgconn.transaction_status != TransactionStatus.IDLE:
                raise
            self._known().pop(statement, None)
        return self.wait(fetch(statement, values, formats))

    def _fetch(self, statement: str, values: list[bytes | None], formats: list[int]) -> Generator[Any, Any, Rows]:
        if self.keeps_statements:
            name = yield from self._name_of(statement)
            self.pgconn.send_query_prepared(name, values, formats, encoding.BINARY)
        else:
            text = statements.in_any_session(statement)
            self.pgconn.send_query_params(text.encode(), values, None, formats, encoding.BINARY)
        return self._rows((yield from self._result()))

    def _fetch_early(
        self, load: Callable[[Rows], _Loaded], statement: str, values: list[bytes | None], formats: list[int]
    ) -> Generator[Any, Any, _Loaded]:
        name = yield from self._name_of(statement)
        self.pgconn.enter_pipeline_mode()
        try:
            self.pgconn.send_query_prepared(name, values, formats, encoding.BINARY)
            # Otherwise the server sends its rows only after it has committed.
            self.pgconn.send_flush_request()
            self.pgconn.pipeline_sync()
            results = yield from generators.execute(self.pgconn)
            try:
                return load(self._rows(_first(results)))
            finally:
                yield from self._end()
        finally:
            if self.pgconn.status == ConnStatus.OK:
                self.pgconn.exit_pipeline_mode()

    def _start(self, statement: str, values: list[bytes | None], formats: list[int]) -> Generator[Any, Any, None]:
        yield from self._finish()
        name = yield from self._name_of(statement)
        self.pgconn.enter_pipeline_mode()
        self.has_pending_result = True
        self.pgconn.send_query_prepared(name, values, formats, encoding.BINARY)
        self.pgconn.pipeline_sync()
        yield from generators.send(self.pgconn)

    def _finish(self) -> Generator[Any, Any, None]:
        if self.has_pending_result:
            yield from self._end()
            self.pgconn.exit_pipeline_mode()
            self.has_pending_result = False

    def _end(self) -> Generator[Any, Any, None]:
        """Wait for the end of a transaction. Its own errors arrive earlier."""
        results: list[PGresult] = []
        while not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            results += yield from generators.fetch_many(self.pgconn)
            if self.pgconn.status != ConnStatus.OK:
                break
        for result in results:
            _checked(result)
        if not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            raise psycopg.OperationalError("the connection ended before the transaction did")

    def _name_of(self, statement: str) -> Generator[Any, Any, bytes]:
        known = self._known()
        name = known.get(statement)
        if name is None:
            self._prepared_count += 1
            name = b"postbus_%d" % self._prepared_count
            self.pgconn.send_prepare(name, statement.encode())
            yield from self._result()
            known[statement] = name
        return name

    def _rows(self, result: PGresult) -> Rows:
        if self._transformer is None:
            self._transformer = Transformer.from_context(self)
        # It remembers how each type is loaded, which takes longer to find out than to do.
        self._transformer.set_pgresult(result)
        try:
            return self._transformer.load_rows(0, result.ntuples, tuple)
        finally:
            self._transformer.set_pgresult(None)

    def _result(self) -> Generator[Any, Any, PGresult]:
        return _first((yield from generators.execute(self.pgconn)))

    def _known(self) -> dict[str, bytes]:
        if self._names is None:
            self._names = {}
        return self._names


def _first(results: list[PGresult]) -> PGresult:
    # An error at the commit comes behind the rows, and the loss of the connection behind an error.
    first, *_ = [_checked(result) for result in results]
    return first


def _checked(result: PGresult) -> PGresult:
    if result.status not in _WENT_WELL:
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    return result
