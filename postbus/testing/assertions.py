"""What was published, and assertions about it."""

from __future__ import annotations

from typing import Any, Final

import postbus

_ANY: Final = object()
# How many messages a failed assertion shows.
_SHOWN: Final = 10


def messages(bus: postbus.Bus, stream: str, *, key: str | None = None) -> list[postbus.Message]:
    """The messages of a stream, in order. Scheduled messages are not among them.

    Args:
        bus: The bus.
        stream: The stream.
        key: Only those whose key matches this pattern, such as `orders.>`.
    """
    return list(bus.scan(stream, key_pattern=key))


def assert_published(
    bus: postbus.Bus,
    stream: str,
    *,
    key: str | None = None,
    data: Any = _ANY,
    headers: dict[str, str] | None = None,
    count: int | None = None,
) -> list[postbus.Message]:
    """Assert that messages were published that match; return them.

    Args:
        bus: The bus.
        stream: The stream.
        key: Their key, or a pattern such as `orders.>`.
        data: Their data. For a dict, the fields given here; messages may have more.
        headers: Headers that they have, besides others.
        count: How many there are; None accepts any number but none.

    Raises:
        AssertionError: There are none, or not as many; it shows what was published.
    """
    there = messages(bus, stream)
    found = [each for each in messages(bus, stream, key=key) if _matches(each, data, headers)]
    if (count is None and found) or len(found) == count:
        return found
    wanted = "a message" if count is None else f"{count} {'message' if count == 1 else 'messages'}"
    raise AssertionError(
        f"expected {wanted} in {stream} {_said(key, data, headers)}, found {len(found)}{_listed(there)}"
    )


def assert_not_published(
    bus: postbus.Bus, stream: str, *, key: str | None = None, data: Any = _ANY, headers: dict[str, str] | None = None
) -> None:
    """Assert that no message was published that matches; see `assert_published`.

    Raises:
        AssertionError: There are some.
    """
    assert_published(bus, stream, key=key, data=data, headers=headers, count=0)


def _matches(message: postbus.Message, data: Any, headers: dict[str, str] | None) -> bool:
    return _has(message.data, data) and (headers or {}).items() <= (message.headers or {}).items()


def _has(data: Any, wanted: Any) -> bool:
    if wanted is _ANY:
        return True
    if isinstance(wanted, dict) and isinstance(data, dict):
        return all(name in data and _has(data[name], value) for name, value in wanted.items())
    return bool(data == wanted)


def _said(key: str | None, data: Any, headers: dict[str, str] | None) -> str:
    parts = {"key": key, "data": None if data is _ANY else data, "headers": headers}
    return "with " + (
        ", ".join(f"{name} = {value!r}" for name, value in parts.items() if value is not None) or "any content"
    )


def _listed(there: list[postbus.Message]) -> str:
    if not there:
        return "; the stream is empty"
    lines = [f"  {each.key}: {each.data!r}" for each in there[-_SHOWN:]]
    return f"; the last of {len(there)}:\n" + "\n".join(lines)
