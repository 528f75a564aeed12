"""What of a receive may be sent beside each other, and what has to follow one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postbus.model.delivery import Delivery
from postbus.model.push import PushEndpoint


def lanes_of(endpoint: PushEndpoint, deliveries: Sequence[Delivery]) -> Iterator[list[list[Delivery]]]:
    """What may be sent beside each other: in each, requests that have to follow one another."""
    if endpoint.mode == "batch":
        size = endpoint.batch_size
        if endpoint.order == "none":
            yield from ([list(deliveries[start : start + size])] for start in range(0, len(deliveries), size))
        else:
            yield [list(deliveries[start : start + size]) for start in range(0, len(deliveries), size)]
        return
    lanes: dict[object, list[list[Delivery]]] = {}
    for each in deliveries:
        lane = each.ack_id
        if endpoint.order == "key" and each.key is not None:
            lane = each.key
        elif endpoint.order == "partition":
            lane = str(each.partition)
        lanes.setdefault(lane, []).append([each])
    yield from lanes.values()
