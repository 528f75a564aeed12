"""What can be done over Postgres can be done over HTTP: nothing that is inherited there needs a database."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from postbus.bus._async.http_bus import AsyncHttpBus
from postbus.bus._async.http_consumer import AsyncHttpConsumer, AsyncHttpQueue
from postbus.bus._async.http_group import AsyncHttpGroup

POSTGRES = {"_database", "_wakeups", "_streams"}


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def reached(kind: type[Any], name: str, seen: set[str]) -> Iterator[str]:
    """The names that a method uses, and the methods of its class that it calls."""
    method = inspect.getattr_static(kind, name, None)
    function = method.fget if isinstance(method, property) else method
    if name in seen or not inspect.isfunction(function):
        return
    seen.add(name)
    for used in names_in(function.__code__):
        yield used
        yield from reached(kind, used, seen)


@pytest.mark.parametrize("kind", [AsyncHttpBus, AsyncHttpConsumer, AsyncHttpQueue, AsyncHttpGroup])
def test_no_public_method_over_http_needs_postgres(kind: type[Any]) -> None:
    public = [name for name in dir(kind) if not name.startswith("_")]
    needy = [name for name in public if POSTGRES & set(reached(kind, name, set()))]
    assert needy == []
