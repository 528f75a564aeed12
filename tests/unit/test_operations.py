"""Each operation can be run over Postgres and over HTTP, and the server has an endpoint for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from postbus.codec.rows import Unfilled
from postbus.model.group import Claim
from postbus.model.message import Message, Scheduled
from postbus.model.settings import ConsumerChanges, ConsumerSettings, StreamChanges, StreamSettings, settings_of
from postbus.operations import (
    channels,
    consumers,
    dead_letters,
    deliveries,
    groups,
    messages,
    push,
    schedules,
    sources,
    sqs,
    streams,
    tasks,
    tokens,
    webhook_sources,
)
from postbus.operations.call import Call, Program, Route
from postbus.server.endpoints import ALL

ROOMS = (
    channels,
    consumers,
    dead_letters,
    deliveries,
    groups,
    messages,
    push,
    schedules,
    sources,
    sqs,
    streams,
    tasks,
    tokens,
    webhook_sources,
)
CLAIM = Claim(partition=0, from_seq=1, to_seq=2, message_count=2, token="t", deadline=None)
NOW = datetime.now(UTC)
BY_NAME: dict[str, Any] = {
    "given": {},
    "unset": (),
    "headers": {},
    "retry_schedule": [1.0],
    "permanent_statuses": [400],
    "fields": {},
    "options": {},
    "attributes": {},
    "tags": {},
    "claims": [CLAIM],
    "ids": ["0123456789abcdef"],
    "session": timedelta(seconds=30),
    "lease": 30.0,
    "backoff": (),
    "message": Message(data=1),
    "url": "postgresql://ada@db/shop",
    "columns": {},
    "filters": {},
    "occurrences": [NOW],
    "unfilled": Unfilled(1, 1, None, timedelta(hours=1), "UTC", "latest", 1, NOW, NOW, NOW),
}


def operations(room: ModuleType) -> Iterator[Callable[..., Call[Any]]]:
    for name, function in inspect.getmembers(room, inspect.isfunction):
        if function.__module__ == room.__name__ and get_origin(get_type_hints(function)["return"]) is Call:
            assert not name.startswith("_")
            yield function


def value_for(name: str, hint: Any) -> Any:
    """Any value of the type of a parameter."""
    if name in BY_NAME:
        return [1] if name == "ids" and "int" in str(hint) else BY_NAME[name]
    for kind in (hint, *get_args(hint)):
        if kind is str:
            return "x"
        if kind in (int, float, bool):
            return 1
        if kind is datetime:
            return NOW
        if get_origin(kind) is Literal:
            return get_args(kind)[0]
        if kind is Scheduled or kind is Route:
            return None
    return ["1"] if "str" in str(hint) or "Literal" in str(hint) else [1]


def call_of(function: Callable[..., Call[Any]]) -> Call[Any]:
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    values = {
        each.name: value_for(each.name, hints[each.name])
        for each in parameters
        if each.default is inspect.Parameter.empty
    }
    return function(**values)


ONLY_POSTGRES = (
    tokens.find,
    tokens.find_key,
    sqs.find,
    sqs.list_served,
    sqs.create,
    sqs.change,
    sqs.drop,
    sqs.purge,
    sqs.count,
    tasks.run,
    schedules.to_fill,
    schedules.fill,
    push.targets,
    push.to_send,
    push.report,
    push.take_probe,
    push.take_turns,
    push.take_tests,
    webhook_sources.to_receive,
    webhook_sources.note_refusal,
)
ALL_OPERATIONS = [function for room in ROOMS for function in operations(room)]


@pytest.mark.parametrize("function", ALL_OPERATIONS, ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_an_operation_has_a_parameter_for_each_placeholder(function: Callable[..., Call[Any]]) -> None:
    if isinstance(call_of(function).sql, Program):
        return
    statement, parameters = call_of(function).as_sql()
    numbers = {int(number) for number in re.findall(r"\$(\d+)", statement)}
    assert numbers == set(range(1, len(parameters) + 1))


@pytest.mark.parametrize("function", ALL_OPERATIONS, ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_an_operation_has_a_request_with_a_name_for_each_part_of_its_path(function: Callable[..., Call[Any]]) -> None:
    http = call_of(function).http
    if function in ONLY_POSTGRES:
        assert http is None
        return
    assert http is not None
    assert http.route.path.count("{") == len(http.names)
    assert "{" not in http.route.of(*http.names)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_the_server_has_an_endpoint_for_each_route(room: ModuleType) -> None:
    endpoints = [endpoint.route for endpoint in ALL]
    assert [route for route in vars(room).values() if isinstance(route, Route) and route not in endpoints] == []


@pytest.mark.parametrize("kind", [StreamSettings, StreamChanges, ConsumerSettings, ConsumerChanges])
def test_each_setting_has_help_that_is_a_sentence(kind: Any) -> None:
    for setting in settings_of(kind).values():
        assert setting.help.endswith(".")
        assert setting.help[0].isupper() or ":" in setting.help


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    from postbus.codec.settings import given

    with pytest.raises(TypeError, match='did you mean "ack_wait"'):
        given(ConsumerSettings, {"ack_wiat": 1})
