"""Sweeps and maintenance on demand, which the server also runs by itself, and what is wrong with Postgres."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from postbus.doctor import diagnosis, postgres
from postbus.doctor.finding import Finding
from postbus.operations import streams
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Name
from postbus.server.responses import Data

endpoints = Endpoints()


class Upkeep(Struct, forbid_unknown_fields=True):
    """One stream, or all of them."""

    stream: Name | None = None


@endpoints.add(streams.SWEEP)
async def sweep(call: Call, body: Upkeep) -> Data[responses.Count]:
    """Redeliver expired and due messages. Returns how many messages became available."""
    return Data(responses.Count(await call.bus.sweep(await _stream(call, body))))


@endpoints.add(streams.MAINTAIN)
async def maintain(call: Call, body: Upkeep) -> Data[responses.Count]:
    """Begin, seal and drop segments of the log where due. Returns how many steps were taken."""
    return Data(responses.Count(await call.bus.maintain(await _stream(call, body))))


@endpoints.add(streams.DOCTOR)
async def find_problems(call: Call) -> Data[list[Finding]]:
    """Look for problems of Postgres, streams and consumers, as `postbus doctor` does. It changes nothing."""
    facts = await asyncio.to_thread(diagnosis.examine, call.bus.url)
    return Data(list(postgres.check(diagnosis.without_queries(facts), machine="the server")))


async def _stream(call: Call, body: Upkeep) -> str | None:
    if body.stream is not None:
        return await call.stream_for("manage", body.stream)
    call.demand("manage", None)
    return None
