"""Extends leases for the heartbeat of a worker, by a connection that nothing else uses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from postbus.codec import fields, rows
from postbus.db import statements
from postbus.db._sync.database import Database

if TYPE_CHECKING:
    from postbus.http._sync.client import HttpClient


class LeaseExtender(Protocol):
    """Extends leases of one consumer."""

    def extend(self, ack_ids: Sequence[str], ack_wait: timedelta) -> int:
        """Extend leases to this long from now. Returns how many deliveries they hold."""
        ...

    def close(self) -> None: ...


class PostgresLeaseExtender:
    """One connection to Postgres, opened when it is first needed."""

    def __init__(self, url: str, stream: str, consumer: str, *, connect_timeout: float) -> None:
        self._database = Database(url, pool_size=1, connect_timeout=connect_timeout)
        self._consumer = (stream, consumer)
        self._is_open = False

    def extend(self, ack_ids: Sequence[str], ack_wait: timedelta) -> int:
        if not self._is_open:
            self._database.open()
            self._is_open = True
        parameters = (*self._consumer, rows.text_array(ack_ids), ack_wait, False)
        return int(self._database.rows(statements.EXTEND, parameters, repeatable=True)[0][0])

    def close(self) -> None:
        if self._is_open:
            self._database.close()


class HttpLeaseExtender:
    """One connection to a server."""

    def __init__(self, client: HttpClient, stream: str, consumer: str) -> None:
        self._client = client
        self._path = fields.path("streams", stream, "consumers", consumer, "extend")

    def extend(self, ack_ids: Sequence[str], ack_wait: timedelta) -> int:
        body = fields.body(ack_ids=list(ack_ids), ack_wait_ms=fields.ms(ack_wait))
        return self._client.call("POST", self._path, body=body, repeatable=True).count

    def close(self) -> None:
        self._client.close()
