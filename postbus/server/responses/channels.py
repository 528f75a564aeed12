"""Limits of channels in responses."""

from __future__ import annotations

import msgspec

from postbus.model import channel
from postbus.server.responses.common import required_ms


class ChannelLimits(msgspec.Struct):
    """The limits of the channels that a pattern matches; null is none."""

    pattern: str
    max_concurrency: int | None
    max_rate: int | None
    per_ms: int
    burst: int
    weight: int
    paused: bool


def channel_limits(found: channel.ChannelLimits) -> ChannelLimits:
    return ChannelLimits(
        pattern=found.pattern,
        max_concurrency=found.max_concurrency,
        max_rate=found.max_rate,
        per_ms=required_ms(found.per),
        burst=found.burst,
        weight=found.weight,
        paused=found.paused,
    )
