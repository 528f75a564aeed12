# Generated from postbus/db/_async/connection.py by `make generate`; edit that file.

"""A pooled connection that runs prepared statements without a cursor.

A cursor takes a statement apart, adapts each value by its type, keeps state for fetching: half of what a small call costs the
client. Here a statement is prepared once for each connection and then sent with its parameters. 83 µs became 48 µs of the
client's time for a small call (docs/decisions/0007).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import psycopg
from psycopg import generators
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from postbus.db import parameters as encoding
from postbus.db import statements

Rows = list[tuple[Any, ...]]


class LeanConnection(psycopg.Connection[Any]):
    """A connection with `fetch`. Whoever uses it has it to himself, as the pool ensures."""

    _names: dict[str, bytes] | None = None
    _prepared_count = 0
    keeps_statements = True
    """Whether the server remembers prepared statements. Not so behind a pooler in transaction mode."""

    def fetch(self, statement: str, parameters: Sequence[Any]) -> Rows:
        """Run a statement with parameters $1, $2, … and return its rows."""
        values, formats = encoding.encode(parameters)
        with self.lock:
            try:
                return self.wait(self._fetch(statement, values, formats))
            except psycopg.errors.FeatureNotSupported:
                # "cached plan must not change result type": a migration has replaced a function since it was prepared.
                self._known().pop(statement, None)
                return self.wait(self._fetch(statement, values, formats))

    def _fetch(self, statement: str, values: list[bytes | None], formats: list[int]) -> Generator[Any, Any, Rows]:
        if self.keeps_statements:
            known = self._known()
            name = known.get(statement)
            if name is None:
                self._prepared_count += 1
                name = b"postbus_%d" % self._prepared_count
                self.pgconn.send_prepare(name, statement.encode())
                yield from self._result()
                known[statement] = name
            self.pgconn.send_query_prepared(name, values, formats, encoding.BINARY)
        else:
            text = statements.in_any_session(statement)
            self.pgconn.send_query_params(text.encode(), values, None, formats, encoding.BINARY)
        result = yield from self._result()
        transformer = Transformer.from_context(self)
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, tuple)

    def _result(self) -> Generator[Any, Any, PGresult]:
        result: PGresult
        (result,) = yield from generators.execute(self.pgconn)
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        return result

    def _known(self) -> dict[str, bytes]:
        if self._names is None:
            self._names = {}
        return self._names
