"""Scheduled messages: list, cancel, reschedule."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.message import Scheduled
from postbus.operations import messages
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import KeyPattern, Limit, Seq, Seqs, Time, given, moment
from postbus.server.responses import Data

endpoints = Endpoints()


class ListScheduled(Struct):
    """`after_at` and `after_id` are the time and the id of the last message of the previous page."""

    limit: Limit = 100
    key_pattern: KeyPattern | UnsetType = UNSET
    after_at: Time | UnsetType = UNSET
    after_id: Seq | UnsetType = UNSET


class ScheduledIds(Struct, forbid_unknown_fields=True):
    ids: Seqs


class Reschedule(Struct, forbid_unknown_fields=True):
    ids: Seqs
    deliver_at: Annotated[datetime, Meta(tz=True)]


@endpoints.add(messages.LIST_SCHEDULED)
async def list_scheduled(call: Call, query: ListScheduled) -> Data[list[responses.ScheduledMessage]]:
    """List scheduled messages, earliest first."""
    found = await call.bus.list_scheduled(
        call.stream, key_pattern=given(query.key_pattern), after=_after(query), max_messages=query.limit
    )
    return Data([responses.scheduled(each) for each in found])


@endpoints.add(messages.CANCEL)
async def cancel_scheduled(call: Call, body: ScheduledIds) -> Data[responses.Count]:
    """Cancel scheduled messages. Messages that are already published do not count."""
    return Data(responses.Count(await call.bus.cancel(call.stream, body.ids)))


@endpoints.add(messages.RESCHEDULE)
async def reschedule(call: Call, body: Reschedule) -> Data[responses.Count]:
    """Reschedule messages."""
    return Data(
        responses.Count(await call.bus.reschedule(call.stream, body.ids, moment(body.deliver_at) or body.deliver_at))
    )


def _after(query: ListScheduled) -> Scheduled | None:
    time = moment(query.after_at)
    if time is None:
        return None
    number = 2**63 - 1 if query.after_id is UNSET else query.after_id
    return Scheduled(id=number, deliver_at=time, scheduled_at=time, ttl=None, key=None, data=None, headers=None)
