"""What the parts of a bus share: the pool, and what is known of streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from postbus.codec import rows
from postbus.db import statements
from postbus.db._async.database import AsyncDatabase, Connection
from postbus.model.errors import Conflict, NotFound
from postbus.model.stream import DataType
from postbus.transport._async.wakeups import AsyncWakeups

_LARGE_BATCH: Final = 50
_Loaded = TypeVar("_Loaded")

# Each is a prepared statement and a compiled function in the memory of every session.
_MAX_OWN_FUNCTIONS = 100


@dataclass(frozen=True, slots=True)
class KnownStream:
    """What a bus remembers of a stream: what it holds, and its id if its own functions are to be used."""

    data_type: DataType
    own_id: int | None


def is_large(max_messages: Any) -> bool:
    """Whether a batch is worth loading early. What is no number is left to Postgres, which says so."""
    return isinstance(max_messages, int) and max_messages >= _LARGE_BATCH


class AsyncBusBase:
    """A pool, and what is known of streams."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database
        self._streams: dict[str, KnownStream] = {}
        self._wakeups = AsyncWakeups(database)

    async def _with_data_type(
        self,
        stream: str,
        connection: Connection | None,
        statement: str,
        parameters: Callable[[DataType], tuple[Any, ...]],
        *,
        repeatable: bool = False,
    ) -> tuple[DataType, list[rows.Row]]:
        """Run a statement whose parameters depend on what the stream holds.

        That is asked once for each stream. The statement names it, so that a stream dropped and created with another type
        is noticed by Postgres before anything is done; then it is asked again.
        """
        known = self._streams.get(stream)
        if known is not None:
            try:
                return known.data_type, await self._database.rows(
                    statement, parameters(known.data_type), connection=connection, repeatable=repeatable
                )
            except Conflict:
                self._streams.pop(stream, None)
                if connection is not None:
                    raise  # The caller's transaction has failed; only the caller can repeat it.
        known = await self._learn(stream, connection)
        return known.data_type, await self._database.rows(
            statement, parameters(known.data_type), connection=connection, repeatable=repeatable
        )

    async def _serve(
        self,
        stream: str,
        connection: Connection | None,
        statement: str,
        parameters: Callable[[DataType], tuple[Any, ...]],
        load: Callable[[DataType, list[rows.Row]], _Loaded],
        *,
        early: bool,
    ) -> _Loaded:
        """Receive by the stream's own function, if it is to be used, which is faster; what `load` makes of the rows.

        Early is while the server commits: for a large batch that is worth it, for a small one it costs more than it saves.
        """
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and connection is None:
            own = statements.receive_from(known.own_id, statement)
            try:
                if early:
                    return await self._database.loaded(partial(load, known.data_type), own, parameters(known.data_type))
                return load(known.data_type, await self._database.rows(own, parameters(known.data_type)))
            except NotFound:
                self._streams.pop(stream, None)  # It was dropped, and perhaps created again.
        return load(*await self._with_data_type(stream, connection, statement, parameters))

    async def _data_type(self, stream: str) -> DataType:
        return (self._streams.get(stream) or await self._learn(stream, None)).data_type

    async def _learn(self, stream: str, connection: Connection | None) -> KnownStream:
        ((stream_id, data_type),) = await self._database.rows(
            statements.STREAM, (stream,), connection=connection, repeatable=True
        )
        known = KnownStream(data_type, stream_id if len(self._streams) < _MAX_OWN_FUNCTIONS else None)
        if connection is None:
            # In the caller's transaction the stream may be one that never comes to be.
            self._streams[stream] = known
        return known
