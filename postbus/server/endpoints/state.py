"""The state of a stream with one message per key: read it, delete a key."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from postbus.operations import messages
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Key, KeyPattern, Limit, given
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()


class StateQuery(Struct):
    limit: Limit = 1000
    key: Key | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    after_key: Key | UnsetType = UNSET


class DeletedKey(Struct):
    """The seq of the message that reports the deletion to consumers."""

    seq: int
    deleted: bool = True


@endpoints.add(messages.STATE)
async def get_state(call: Call, query: StateQuery) -> Data[list[responses.StoredMessage]]:
    """Get the current version of each key, in order of the keys. For the next page, give the last key as `after_key`."""
    found = await call.bus.state(
        call.stream,
        key=given(query.key),
        key_pattern=given(query.key_pattern),
        after_key=given(query.after_key) or "",
        max_messages=query.limit,
    )
    stream_id = await call.stream_id()
    return Data([responses.message(each, stream_id) for each in found])


@endpoints.add(messages.DELETE_KEY)
async def delete_key(call: Call) -> Data[DeletedKey]:
    """Delete a key."""
    key = call.request.parameters["key"]
    seq = await call.bus.delete_key(call.stream, key)
    if seq is None:
        raise Problem(404, "not_found", f'stream "{call.stream}" has no key "{key}"')
    return Data(DeletedKey(seq))
