"""Overviews of streams and consumers, cheap enough to poll."""

from __future__ import annotations

from msgspec import Struct

from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.operations import streams
from postbus.server.endpoint import Call, Endpoints
from postbus.server.responses import Data

endpoints = Endpoints()


class Looking(Struct):
    """With `sizes`, it also returns how many messages and bytes each stream holds and how many are scheduled."""

    sizes: bool = False


@endpoints.add(streams.OVERVIEW)
async def get_overview(call: Call, query: Looking) -> Data[list[StreamOverview]]:
    """Get an overview of all streams."""
    found = await call.bus.overview(sizes=query.sizes)
    return Data([each for each in found if call.token.sees(each.name)])


@endpoints.add(streams.ALL_CONSUMERS)
async def list_all_consumers(call: Call) -> Data[list[ConsumerOverview]]:
    """Get an overview of the consumers of all streams: backlog, in flight, waiting, dead."""
    found = await call.bus.consumer_overview()
    return Data([each for each in found if call.token.sees(each.stream)])


@endpoints.add(streams.CONSUMER_OVERVIEW)
async def get_stream_overview(call: Call) -> Data[list[ConsumerOverview]]:
    """Get an overview of a stream's consumers."""
    return Data(await call.bus.consumer_overview(call.stream))
