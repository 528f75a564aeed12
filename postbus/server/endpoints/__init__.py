"""The endpoints of the server, a module for each noun."""

from postbus.server.endpoint import Endpoint
from postbus.server.endpoints import (
    consumers,
    dead_letters,
    deliveries,
    groups,
    maintenance,
    messages,
    overviews,
    pipelines,
    scheduled,
    schedules,
    sources,
    state,
    streams,
    tokens,
)

# The API's description lists them in this order.
ALL: list[Endpoint] = [
    each
    for module in (
        messages,
        deliveries,
        consumers,
        streams,
        dead_letters,
        scheduled,
        schedules,
        sources,
        state,
        groups,
        overviews,
        pipelines,
        tokens,
        maintenance,
    )
    for each in module.endpoints.all
]
