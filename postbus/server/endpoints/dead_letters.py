"""Dead letters: list, redrive, discard."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.operations import dead_letters
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.endpoints.consumers import is_over, refuse_rate
from postbus.server.fields import AnySeqs, KeyPattern, Limit, Name, NoNul, Rate, Seq, given
from postbus.server.responses import Data

endpoints = Endpoints()


class DeadLetters(Struct):
    """`seqs` are separated by commas."""

    limit: Limit = 100
    after_seq: Seq = 0
    seqs: Annotated[str, Meta(pattern=r"^([0-9]{1,18}(,[0-9]{1,18})*)?$", max_length=10_000)] | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    reason_like: NoNul | UnsetType = UNSET


class Chosen(Struct, forbid_unknown_fields=True):
    """Dead letters that match all given conditions. `reason_like` is an SQL LIKE pattern, such as “timeout%”."""

    seqs: AnySeqs | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    reason_like: NoNul | UnsetType = UNSET


class Redrive(Chosen, forbid_unknown_fields=True):
    """With `to_stream`, the messages are published there instead of being delivered again.

    With `limit`, instead of `rate`, a request moves at most that many. Repeat it until the count is 0.
    """

    schema_extra: ClassVar[dict[str, Any]] = {"not": {"required": ["rate", "limit"]}}

    to_stream: Name | UnsetType = UNSET
    rate: Rate | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


@endpoints.add(dead_letters.LIST)
async def list_dead_letters(call: Call, query: DeadLetters) -> Data[list[responses.DeadMessage]]:
    """List the dead letters of a consumer, by seq."""
    letters = await call.reader.dead_letters(
        seqs=None if query.seqs is UNSET else [int(seq) for seq in query.seqs.split(",") if seq],
        key_pattern=given(query.key_pattern),
        reason_like=given(query.reason_like),
        after_seq=query.after_seq,
        max_messages=query.limit,
    )
    stream_id = await call.stream_id()
    return Data([responses.dead(each, stream_id) for each in letters])


@endpoints.add(dead_letters.REDRIVE, is_long=True)
async def redrive_dead_letters(call: Call, body: Redrive) -> Data[responses.Count]:
    """Redrive dead letters: all, or those that match. Ending the request cancels the rest."""
    to_stream = None if body.to_stream is UNSET else await call.stream_for("publish", body.to_stream)
    if body.limit is not UNSET:
        refuse_rate(body.rate)
        moved = await call.reader.redrive_page(
            seqs=given(body.seqs),
            key_pattern=given(body.key_pattern),
            reason_like=given(body.reason_like),
            to_stream=to_stream,
            max_messages=body.limit,
        )
        return Data(responses.Count(moved))
    count = 0
    redriven = call.reader.redrive_steps(
        seqs=given(body.seqs),
        key_pattern=given(body.key_pattern),
        reason_like=given(body.reason_like),
        to_stream=to_stream,
        rate=given(body.rate),
    )
    async for count in redriven:  # noqa: B007
        if await is_over(call):
            break
    return Data(responses.Count(count))


@endpoints.add(dead_letters.DISCARD)
async def discard_dead_letters(call: Call, body: Chosen) -> Data[responses.Count]:
    """Remove dead letters: all, or those that match."""
    discarded = await call.reader.discard(
        seqs=given(body.seqs), key_pattern=given(body.key_pattern), reason_like=given(body.reason_like)
    )
    return Data(responses.Count(discarded))
