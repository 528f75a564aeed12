"""What can be asked of the server, by noun."""

from postbus.server.calls import Endpoint
from postbus.server.endpoints import (
    consumers,
    dead_letters,
    deliveries,
    groups,
    messages,
    overviews,
    pipelines,
    scheduled,
    state,
    streams,
    tokens,
    upkeep,
)

# Routes are tried in this order: what is asked most comes first.
ALL: list[Endpoint] = [
    each
    for module in (
        messages,
        deliveries,
        consumers,
        streams,
        dead_letters,
        scheduled,
        state,
        groups,
        overviews,
        pipelines,
        tokens,
        upkeep,
    )
    for each in module.endpoints.all
]
