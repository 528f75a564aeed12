"""Recurring schedules: create, list, change, pause, resume, run now."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.recurrence import CatchUp
from postbus.operations import schedules
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.endpoints.messages import NewMessage, decoded
from postbus.server.fields import Key, Name, NoNul, Priority, given, seconds
from postbus.server.responses import Data, Encoding

endpoints = Endpoints()

_YEARS_MS = 3650 * 24 * 60 * 60 * 1000
Cron = Annotated[
    str, Meta(max_length=200, description="Such as 30 2 * * MON-FRI", extra_json_schema={"format": "cron"})
]
Every = Annotated[int, Meta(ge=1000, le=_YEARS_MS, description="Milliseconds")]
TimeZone = Annotated[
    str,
    Meta(min_length=1, max_length=100, description="Such as Europe/Berlin", extra_json_schema={"format": "time-zone"}),
]
Ttl = Annotated[int, Meta(ge=1, le=_YEARS_MS, description="Milliseconds")]
MostCaughtUp = Annotated[int, Meta(ge=1, le=1000)]


class NewSchedule(Struct, forbid_unknown_fields=True):
    """Either `cron` or `every_ms`. `data` is as for a message."""

    schema_extra: ClassVar[dict[str, Any]] = {
        **NewMessage.schema_extra,
        "oneOf": [{"required": ["cron"]}, {"required": ["every_ms"]}],
    }

    name: Name
    data: Any
    cron: Cron | UnsetType = UNSET
    every_ms: Every | UnsetType = UNSET
    time_zone: TimeZone = "UTC"
    key: Key | None = None
    headers: dict[NoNul, NoNul] | None = None
    encoding: Encoding | None = None
    ttl_ms: Ttl | None = None
    catch_up: CatchUp = "latest"
    max_catch_up: MostCaughtUp = 100
    exist_ok: bool = False
    priority: Priority = 4


class ChangedSchedule(Struct, forbid_unknown_fields=True):
    """What is left out stays as it is; `cron` replaces `every_ms`, and the other way round."""

    schema_extra: ClassVar[dict[str, Any]] = {**NewMessage.schema_extra, "not": {"required": ["cron", "every_ms"]}}

    cron: Cron | UnsetType = UNSET
    every_ms: Every | UnsetType = UNSET
    time_zone: TimeZone | UnsetType = UNSET
    key: Key | UnsetType | None = UNSET
    data: Any | UnsetType = UNSET
    headers: dict[NoNul, NoNul] | UnsetType | None = UNSET
    encoding: Encoding | UnsetType = UNSET
    ttl_ms: Ttl | UnsetType | None = UNSET
    catch_up: CatchUp | UnsetType = UNSET
    max_catch_up: MostCaughtUp | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET


class DroppedSchedule(Struct):
    name: str
    deleted: bool = True


class Run(Struct):
    """The message that was published."""

    seq: int


@endpoints.add(schedules.CREATE, invalid_status=422)
async def create_schedule(call: Call, body: NewSchedule) -> Data[responses.Schedule]:
    """Create a recurring schedule."""
    await call.bus.schedules.create(
        call.stream,
        body.name,
        cron=given(body.cron),
        every=seconds(body.every_ms),
        time_zone=body.time_zone,
        key=body.key,
        data=body.data if body.encoding is None else decoded("data", body.data),
        headers=body.headers,
        ttl=seconds(body.ttl_ms),
        catch_up=body.catch_up,
        max_catch_up=body.max_catch_up,
        exist_ok=body.exist_ok,
        priority=body.priority,
    )
    return await _info(call, body.name)


@endpoints.add(schedules.LIST)
async def list_schedules(call: Call) -> Data[list[responses.Schedule]]:
    """List the recurring schedules of a stream, with their next times and last runs."""
    return Data([responses.schedule(each) for each in await call.bus.schedules.list_all(call.stream)])


@endpoints.add(schedules.LIST_ALL)
async def list_all_schedules(call: Call) -> Data[list[responses.Schedule]]:
    """List the recurring schedules of all streams."""
    return Data([responses.schedule(each) for each in await call.bus.schedules.list_all()])


@endpoints.add(schedules.INFO)
async def get_schedule(call: Call) -> Data[responses.Schedule]:
    """Get a recurring schedule."""
    return await _info(call, _name(call))


@endpoints.add(schedules.ALTER)
async def alter_schedule(call: Call, body: ChangedSchedule) -> Data[responses.Schedule]:
    """Change a recurring schedule."""
    changes: dict[str, Any] = {}
    if body.data is not UNSET:
        changes["data"] = body.data if body.encoding is UNSET else decoded("data", body.data)
    unset = [
        name for name, field in (("key", body.key), ("headers", body.headers), ("ttl", body.ttl_ms)) if field is None
    ]
    await call.bus.schedules.alter(
        call.stream,
        _name(call),
        cron=given(body.cron),
        every=seconds(body.every_ms),
        time_zone=given(body.time_zone),
        key=given(body.key),
        headers=given(body.headers),
        ttl=None if body.ttl_ms is None else seconds(body.ttl_ms),
        catch_up=given(body.catch_up),
        max_catch_up=given(body.max_catch_up),
        unset=unset,
        priority=given(body.priority),
        **changes,
    )
    return await _info(call, _name(call))


@endpoints.add(schedules.DROP)
async def drop_schedule(call: Call) -> Data[DroppedSchedule]:
    """Remove a recurring schedule. What it has published stays."""
    await call.bus.schedules.drop(call.stream, _name(call))
    return Data(DroppedSchedule(_name(call)))


@endpoints.add(schedules.PAUSE)
async def pause_schedule(call: Call) -> Data[responses.Schedule]:
    """Pause a recurring schedule."""
    await call.bus.schedules.pause(call.stream, _name(call))
    return await _info(call, _name(call))


@endpoints.add(schedules.RESUME)
async def resume_schedule(call: Call) -> Data[responses.Schedule]:
    """Resume a recurring schedule, from now on."""
    await call.bus.schedules.resume(call.stream, _name(call))
    return await _info(call, _name(call))


@endpoints.add(schedules.RUN)
async def run_schedule(call: Call) -> Data[Run]:
    """Publish the message of a recurring schedule now. Its times stay as they are."""
    return Data(Run(await call.bus.schedules.run_now(call.stream, _name(call))))


def _name(call: Call) -> str:
    return call.request.parameters["schedule"]


async def _info(call: Call, name: str) -> Data[responses.Schedule]:
    return Data(responses.schedule(await call.bus.schedules.info(call.stream, name)))
