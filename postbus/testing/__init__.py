"""Test code that uses Postbus, against a real Postgres that starts by itself.

With pytest, the fixtures `postbus_url` and `postbus_bus` are there as soon as Postbus is installed. Everything else is for any
test runner. Names are imported when they are first used, as pytest loads the fixtures' module in projects that do not use them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postbus.testing.assertions import assert_not_published, assert_published, messages
    from postbus.testing.databases import TemporaryServer, temporary_server
    from postbus.testing.working import drain, drain_async, make_due

_HOME_OF = {
    "TemporaryServer": "databases",
    "assert_not_published": "assertions",
    "assert_published": "assertions",
    "drain": "working",
    "drain_async": "working",
    "make_due": "working",
    "messages": "assertions",
    "temporary_server": "databases",
}

__all__ = [
    "TemporaryServer",
    "assert_not_published",
    "assert_published",
    "drain",
    "drain_async",
    "make_due",
    "messages",
    "temporary_server",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"postbus.testing.{_HOME_OF[name]}"), name)
