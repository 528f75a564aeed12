"""Ends the sessions of others in the middle of their statements."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

import psycopg

_TERMINATE: Final = """
select count(pg_terminate_backend(a.pid))
from pg_stat_activity as a
where a.datname = current_database() and a.state = 'active' and a.query like '%publish_many%'
    and a.pid <> pg_backend_pid()
"""


class BackendTerminator:
    """Watches a database and, each time that it is told to, ends the first session that it sees publishing a batch."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._armed = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def arm(self) -> None:
        self._armed.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            if self._armed.wait(timeout=0.05) and self._strike():
                self._armed.clear()

    def _strike(self) -> bool:
        found = self._connection.execute(_TERMINATE.encode()).fetchone()
        return found is not None and found[0] > 0
