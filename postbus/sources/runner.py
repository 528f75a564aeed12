"""Reads all sources of a bus that nobody else reads, each in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Final
from uuid import uuid4

from postbus.db.session import KeptSession
from postbus.model.errors import Error
from postbus.sources import target
from postbus.sources.reader import Reader

_log = logging.getLogger("postbus.source")
_LOOK_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 20.0


class SourceRunner:
    """Any number may run, in any number of processes: each source is read by one of them at a time.

    Args:
        url: The database of the bus.
        only: These sources; None are all.
    """

    def __init__(self, url: str, *, only: Collection[str] | None = None) -> None:
        self._url = url
        self._only = only
        self._stop = threading.Event()
        self._readers: dict[str, tuple[Reader, threading.Thread]] = {}
        self._session: KeptSession | None = None
        self._problem: str | None = None

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    @property
    def names(self) -> list[str]:
        """The sources that are read here."""
        return [name for name, (_, thread) in self._readers.items() if thread.is_alive()]

    def run(self) -> None:
        """Read until `stop`."""
        try:
            while not self._stop.is_set():
                self._look()
                self._stop.wait(_LOOK_SECONDS)
        finally:
            self._end()

    def _look(self) -> None:
        """Begin to read what nobody reads."""
        try:
            if self._session is None:
                self._session = KeptSession.open(self._url)
            for name in target.free(self._session):
                if name not in self.names and (self._only is None or name in self._only):
                    self._begin(name)
            self._problem = None
        except Error as error:
            if error.message != self._problem:
                _log.warning("sources wait for the bus: %s", error.message)
            self._problem = error.message
            self._forget_session()

    def _begin(self, name: str) -> None:
        reader = Reader(self._url, name, uuid4())
        thread = threading.Thread(target=reader.run, name=f"postbus source {name}", daemon=True)
        self._readers[name] = (reader, thread)
        thread.start()

    def _end(self) -> None:
        for reader, _ in self._readers.values():
            reader.stop()
        for _, thread in self._readers.values():
            thread.join(_STOP_SECONDS)
        self._forget_session()

    def _forget_session(self) -> None:
        if self._session is not None:
            with suppress(Error):
                self._session.close()
        self._session = None
