# Generated from postbus/transport/_async/known_streams.py by `make generate`; edit that file.

"""A transport's cache of streams: their types and ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from postbus.codec.rows import Row
from postbus.db import statements
from postbus.db._sync.database import Database
from postbus.db.own_connections import OwnConnection
from postbus.model.errors import Conflict, NotAllowed, NotFound
from postbus.model.stream import DataType

_Loaded = TypeVar("_Loaded")

# Each is a prepared statement and a compiled function in the memory of every session.
_MAX_OWN_FUNCTIONS: Final = 100
_LARGE_BATCH: Final = 50
# A stream's own function is gone because the stream was dropped, and perhaps created again. Or the caller may not call it: then
# the public function says in its own words which right is missing.
NO_OWN_FUNCTION: Final = (NotFound, NotAllowed)


@dataclass(frozen=True, slots=True)
class KnownStream:
    """A stream: its type, and its id if its own SQL functions should be used."""

    data_type: DataType
    own_id: int | None


def is_large(max_messages: Any) -> bool:
    """Whether decoding a batch early is worth it. Postgres itself refuses what is not a number."""
    return isinstance(max_messages, int) and max_messages >= _LARGE_BATCH


class KnownStreams:
    """Runs statements that depend on the type of a stream."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._streams: dict[str, KnownStream] = {}

    def get(self, stream: str) -> KnownStream | None:
        return self._streams.get(stream)

    def forget(self, stream: str) -> None:
        self._streams.pop(stream, None)

    def data_type(self, stream: str) -> DataType:
        return (self._streams.get(stream) or self._learn(stream, None)).data_type

    def run(
        self,
        stream: str,
        connection: OwnConnection | None,
        statement: str,
        parameters: Callable[[DataType], Sequence[Any]],
        *,
        repeatable: bool = False,
    ) -> tuple[DataType, list[Row]]:
        """Run a statement whose parameters depend on what the stream holds.

        That is looked up once for each stream. The statement names it, so Postgres refuses the call, before it does anything, if
        the stream was dropped and created with another type. Then it is looked up again.
        """
        known = self._streams.get(stream)
        if known is not None:
            try:
                return known.data_type, self._database.rows(
                    statement, parameters(known.data_type), connection=connection, repeatable=repeatable
                )
            except Conflict:
                self.forget(stream)
                if connection is not None:
                    raise  # The caller's transaction has failed, and only the caller can repeat it.
        known = self._learn(stream, connection)
        return known.data_type, self._database.rows(
            statement, parameters(known.data_type), connection=connection, repeatable=repeatable
        )

    def run_own(self, stream: str, own: Callable[[int], str], statement: str, parameters: Sequence[Any]) -> list[Row]:
        """Run a statement by the stream's own function if possible, which is faster."""
        known = self._streams.get(stream) or self._learn(stream, None)
        if known.own_id is not None:
            try:
                return self._database.rows(own(known.own_id), parameters)
            except NO_OWN_FUNCTION:
                self.forget(stream)
        return self._database.rows(statement, parameters)

    def receive(
        self,
        stream: str,
        connection: OwnConnection | None,
        statement: str,
        parameters: Callable[[DataType], Sequence[Any]],
        load: Callable[[DataType, list[Row]], _Loaded],
        *,
        early: bool,
    ) -> _Loaded:
        """Receive by the stream's own function if possible, which is faster.

        Early decodes rows while the server commits: worth it for a large batch, more expensive for a small one.
        """
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and connection is None:
            own = statements.receive_from(known.own_id, statement)
            try:
                if early:
                    return self._database.fetch_decoded(
                        partial(load, known.data_type), own, parameters(known.data_type)
                    )
                return load(known.data_type, self._database.rows(own, parameters(known.data_type)))
            except NO_OWN_FUNCTION:
                self.forget(stream)
        return load(*self.run(stream, connection, statement, parameters))

    def _learn(self, stream: str, connection: OwnConnection | None) -> KnownStream:
        ((stream_id, data_type),) = self._database.rows(
            statements.STREAM, (stream,), connection=connection, repeatable=True
        )
        known = KnownStream(data_type, stream_id if len(self._streams) < _MAX_OWN_FUNCTIONS else None)
        if connection is None:
            # A stream in the caller's transaction may never come to exist.
            self._streams[stream] = known
        return known
