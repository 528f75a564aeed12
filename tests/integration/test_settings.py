"""The ranges in model/settings.py are those that Postgres enforces."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import postbus
from postbus.model.settings import ConsumerChanges, Setting, StreamChanges, settings_of
from tests.waiting import until

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


@pytest.mark.parametrize(
    ("first", "second"),
    [("ack_wait => '5 seconds'", "max_deliver => 3"), ("filter_key_pattern => 'a.>'", "filter_data => '$.paid'")],
)
def test_of_two_who_alter_a_consumer_at_once_neither_undoes_what_the_other_changed(
    connect: Any, name: str, first: str, second: str
) -> None:
    one, other = connect(), connect()
    one.execute("select postbus.create_stream(%s), postbus.create_consumer(%s, 'c')", (name, name))
    waiting = threading.Thread(
        target=other.execute, args=(f"select postbus.alter_consumer(%s, 'c', {second})", (name,)), daemon=True
    )
    with one.transaction():
        one.execute(f"select postbus.alter_consumer(%s, 'c', {first})", (name,))
        waiting.start()
        pid = other.info.backend_pid
        until(lambda: is_blocked(one, pid), "the second waits for the first")
    waiting.join(30)

    expected = " and ".join(f"c.{part.replace('=>', '=')}" for part in (first, second)).replace(
        "c.filter_data = '$.paid'", "c.filter_data::text = '$.\"paid\"'"
    )
    query = f"select {expected} from postbus_data.consumer as c where c.stream_name = %s"
    assert one.execute(query, (name,)).fetchone() == (True,)


def is_blocked(connection: Any, pid: int) -> bool:
    return bool(connection.execute("select cardinality(pg_blocking_pids(%s)) > 0", (pid,)).fetchone()[0])
