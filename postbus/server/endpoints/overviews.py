"""Where streams and consumers stand, for those who look again and again."""

from __future__ import annotations

from msgspec import Struct

from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.operations import streams
from postbus.server.endpoint import Call, Endpoints
from postbus.server.responses import Data

endpoints = Endpoints()


class Looking(Struct):
    """With `sizes` it says how many messages and bytes they hold, too, which costs a look at the files of each."""

    sizes: bool = False


@endpoints.add(streams.OVERVIEW)
async def get_overview(call: Call, query: Looking) -> Data[list[StreamOverview]]:
    """Get where all streams stand."""
    found = await call.bus.overview(sizes=query.sizes)
    return Data([each for each in found if call.token.sees(each.name)])


@endpoints.add(streams.CONSUMER_OVERVIEW)
async def get_stream_overview(call: Call) -> Data[list[ConsumerOverview]]:
    """Get where all consumers of a stream stand."""
    return Data(await call.bus.consumer_overview(call.stream))
