"""The pages of the console, by method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from postbus.server.console.pages import (
    archive,
    consumers,
    dead_letters,
    doctor,
    login,
    messages,
    new,
    overview,
    pipelines,
    publish,
    pushes,
    schedules,
    search,
    settings,
    sources,
    streams,
    tokens,
)

_S: Final = "/console/streams/{stream}"
_C: Final = _S + "/consumers/{consumer}"

ALL: Final[tuple[tuple[str, str, Callable[..., Awaitable[Any]]], ...]] = (
    ("GET", "/console/", overview.show),
    ("GET", "/console/login", login.show),
    ("POST", "/console/login", login.log_in),
    ("POST", "/console/logout", login.log_out),
    ("POST", "/console/theme", login.choose_theme),
    ("GET", "/console/search", search.find),
    ("GET", "/console/streams", streams.show_all),
    ("GET", "/console/new/stream", new.show_stream),
    ("POST", "/console/new/stream", new.add_stream),
    ("GET", _S, streams.show),
    ("POST", _S, streams.change),
    ("GET", _S + "/settings", settings.show_stream),
    ("POST", _S + "/settings", settings.alter_stream),
    ("GET", _S + "/messages", messages.show_all),
    ("GET", _S + "/messages/{seq}", messages.show),
    ("GET", _S + "/archive", archive.show),
    ("GET", _S + "/publish", publish.show),
    ("POST", _S + "/publish", publish.publish),
    ("GET", _S + "/schedules", schedules.show_of_stream),
    ("POST", _S + "/schedules", schedules.change),
    ("GET", _S + "/schedules/{schedule}", schedules.show),
    ("POST", _S + "/schedules/{schedule}", schedules.change_one),
    ("GET", _S + "/new-consumer", new.show_consumer),
    ("POST", _S + "/new-consumer", new.add_consumer),
    ("GET", _C, consumers.show),
    ("POST", _C, consumers.change),
    ("GET", _C + "/settings", settings.show_consumer),
    ("POST", _C + "/settings", settings.alter_consumer),
    ("GET", _C + "/dead", dead_letters.show),
    ("POST", _C + "/dead", dead_letters.change),
    ("GET", _C + "/push", pushes.show),
    ("POST", _C + "/push", pushes.change),
    ("GET", "/console/consumers", consumers.show_all),
    ("GET", "/console/dead", dead_letters.show_all),
    ("GET", "/console/schedules", schedules.show_all),
    ("GET", "/console/sources", sources.show_all),
    ("POST", "/console/sources", sources.change),
    ("GET", "/console/push", pushes.show_all),
    ("GET", "/console/pipelines", pipelines.show_all),
    ("GET", "/console/doctor", doctor.show),
    ("GET", "/console/tokens", tokens.show),
    ("POST", "/console/tokens", tokens.change),
)
WITHOUT_SESSION: Final = ("/console/login", "/console/theme")
CHANGING_NOTHING: Final = (*WITHOUT_SESSION, "/console/logout")
