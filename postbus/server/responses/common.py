"""Parts of all responses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

import msgspec

_Item = TypeVar("_Item")


class Data(msgspec.Struct, Generic[_Item]):
    data: _Item


class PageOf(msgspec.Struct, Generic[_Item]):
    """One page. Give `resume` to the next request to continue; null means the end."""

    data: list[_Item]
    resume: str | None


class Success(msgspec.Struct):
    """The header X-Postbus-Count has the number of deliveries that counted. Unknown ids and ended deliveries do not count."""

    success: bool = True


class Deleted(msgspec.Struct):
    id: str
    name: str
    deleted: bool = True


class Count(msgspec.Struct):
    count: int


def utc(time: datetime) -> datetime:
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def ms(duration: timedelta | None) -> int | None:
    return None if duration is None else required_ms(duration)


def required_ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
