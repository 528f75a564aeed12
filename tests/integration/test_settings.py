"""The ranges in model/settings.py are those that Postgres enforces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import postbus
from postbus.model.settings import ConsumerChanges, Setting, StreamChanges, settings_of

pytestmark = pytest.mark.newest_server


def ranged(kind: Any) -> list[Any]:
    return [
        pytest.param(name, setting, id=name)
        for name, setting in settings_of(kind).items()
        if setting.least is not None or setting.most is not None
    ]


def just_outside(setting: Setting) -> Iterator[float]:
    step = 0.001 if setting.kind == "duration" else 1
    if setting.least is not None:
        yield setting.least - step
    if setting.most is not None and setting.most < 2**62:
        yield setting.most + step


@pytest.mark.parametrize(("name_of_setting", "setting"), ranged(ConsumerChanges))
async def test_a_consumer_takes_the_bounds_of_a_setting_and_nothing_beyond(
    bus: Any, stream: str, name_of_setting: str, setting: Setting
) -> None:
    consumer = await bus.create_consumer(stream, "c")
    for bound in (setting.least, setting.most):
        await consumer.alter(**{name_of_setting: bound})
    for value in just_outside(setting):
        with pytest.raises(postbus.InvalidInput, match=name_of_setting):
            await consumer.alter(**{name_of_setting: value})


@pytest.mark.parametrize(("name_of_setting", "setting"), ranged(StreamChanges))
async def test_a_stream_takes_nothing_beyond_the_bounds_of_a_setting(
    bus: Any, stream: str, name_of_setting: str, setting: Setting
) -> None:
    for value in just_outside(setting):
        with pytest.raises(postbus.InvalidInput, match=name_of_setting):
            await bus.alter_stream(stream, **{name_of_setting: value})
