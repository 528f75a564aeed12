"""The endpoints of the server, a module for each noun."""

from postbus.server.endpoint import Endpoint
from postbus.server.endpoints import (
    channels,
    consumers,
    dead_letters,
    deliveries,
    groups,
    maintenance,
    messages,
    overviews,
    pipelines,
    push,
    scheduled,
    schedules,
    sources,
    sqs,
    state,
    streams,
    tasks,
    tokens,
    webhook_sources,
)

# The API's description lists them in this order.
ALL: list[Endpoint] = [
    each
    for module in (
        messages,
        deliveries,
        consumers,
        channels,
        push,
        streams,
        dead_letters,
        scheduled,
        schedules,
        sources,
        webhook_sources,
        sqs,
        state,
        groups,
        overviews,
        pipelines,
        tasks,
        tokens,
        maintenance,
    )
    for each in module.endpoints.all
]
