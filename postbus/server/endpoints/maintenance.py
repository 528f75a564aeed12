"""What the server does by itself now and then, for those who cannot wait: sweep and maintain."""

from __future__ import annotations

from msgspec import Struct

from postbus.operations import streams
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Name
from postbus.server.responses import Data

endpoints = Endpoints()


class Upkeep(Struct, forbid_unknown_fields=True):
    """Of one stream, or of all."""

    stream: Name | None = None


@endpoints.add(streams.SWEEP)
async def sweep(call: Call, body: Upkeep) -> Data[responses.Count]:
    """Redeliver what has expired or come due; answers how many messages became available."""
    return Data(responses.Count(await call.bus.sweep(await _stream(call, body))))


@endpoints.add(streams.MAINTAIN)
async def maintain(call: Call, body: Upkeep) -> Data[responses.Count]:
    """Begin, seal and drop segments of the log, as is due; answers how many steps were taken."""
    return Data(responses.Count(await call.bus.maintain(await _stream(call, body))))


async def _stream(call: Call, body: Upkeep) -> str | None:
    if body.stream is not None:
        return await call.stream_for("manage", body.stream)
    call.demand("manage", None)
    return None
