"""Names for shell completion. Completion stays silent if the bus is slow or cannot be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from postbus.cli.global_options import GlobalOptions
from postbus.cli.target import find_target
from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus import Bus

_CONNECT_SECONDS = 2.0


def streams(given: Mapping[str, Any], incomplete: str) -> list[str]:
    """Streams of the bus that the options so far point to."""
    return _matching(_ask(given, lambda bus: [info.name for info in bus.list_streams()]), incomplete)


def queues(given: Mapping[str, Any], incomplete: str) -> list[str]:
    """Queues: streams that keep messages until they are acked."""
    return _matching(
        _ask(given, lambda bus: [info.name for info in bus.list_streams() if info.until_acked]), incomplete
    )


def consumers(given: Mapping[str, Any], incomplete: str) -> list[str]:
    """Consumers of the stream that was given before."""
    stream = given.get("stream")
    if not stream:
        return []
    return _matching(_ask(given, lambda bus: [info.name for info in bus.list_consumers(stream)]), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _ask(given: Mapping[str, Any], question: Callable[[Bus], list[str]]) -> list[str]:
    """The bus's answer. An embedded Postgres that is not running is not started, as that would take too long."""
    import postbus
    from postbus.db.embedded import EmbeddedServer

    try:
        target = find_target(
            GlobalOptions(context=given.get("context"), url=given.get("url"), data_dir=given.get("data_dir"))
        )
        if target.url is None and not EmbeddedServer(target.data_dir).is_running:
            return []
        with postbus.connect(
            target.url,
            token=target.token,
            data_dir=target.data_dir,
            pool_size=1,
            connect_timeout=_CONNECT_SECONDS,
        ) as bus:
            return question(bus)
    except Error:
        return []
