"""Filters of a query that Postgres can apply: on seq, partition, key and published_at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from postbus.db.arrow import MessageFilter

_MAX_SEQ: Final = 2**63 - 1
_ANY: Final = MessageFilter()


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a query wants: after_seq < seq <= to_seq, one partition or all, and what the messages must be."""

    after_seq: int = 0
    to_seq: int = _MAX_SEQ
    partition: int | None = None
    messages: MessageFilter = _ANY


def push(filters: Iterable[Filter], wanted: Pushed) -> tuple[Pushed, list[Filter]]:
    """What a query with these filters wants, and those that are left to Spark."""
    left: list[Filter] = []
    for one in filters:
        narrowed = _narrow(one, wanted)
        if narrowed is None:
            left.append(one)
        else:
            wanted = narrowed
            # Bounds on a time may be wider than the filter (see _time), so Spark looks again.
            if getattr(one, "attribute", ()) == ("published_at",):
                left.append(one)
    return wanted, left


def _narrow(filter: Filter, wanted: Pushed) -> Pushed | None:
    attribute = getattr(filter, "attribute", ())
    value = getattr(filter, "value", None)
    if attribute == ("seq",) and type(value) is int:
        return _seq(filter, value, wanted)
    if attribute == ("partition",) and type(value) is int and isinstance(filter, EqualTo):
        return replace(wanted, partition=value) if wanted.partition in (None, value) else None
    if attribute == ("key",) and isinstance(value, str):
        return _key(filter, value, wanted)
    if attribute == ("published_at",) and isinstance(value, datetime) and value.tzinfo is not None:
        return _time(filter, value, wanted)
    return None


def _seq(filter: Filter, value: int, wanted: Pushed) -> Pushed | None:
    low, high = wanted.after_seq, wanted.to_seq
    if isinstance(filter, EqualTo):
        low, high = max(low, value - 1), min(high, value)
    elif isinstance(filter, GreaterThan | GreaterThanOrEqual):
        low = max(low, value if isinstance(filter, GreaterThan) else value - 1)
    elif isinstance(filter, LessThan | LessThanOrEqual):
        high = min(high, value if isinstance(filter, LessThanOrEqual) else value - 1)
    else:
        return None
    return replace(wanted, after_seq=low, to_seq=high)


def _key(filter: Filter, value: str, wanted: Pushed) -> Pushed | None:
    if "\x00" in value:
        return None
    if isinstance(filter, EqualTo) and wanted.messages.key in (None, value):
        return _with(wanted, key=value)
    if isinstance(filter, StringStartsWith) and wanted.messages.key_prefix is None:
        return _with(wanted, key_prefix=value)
    return None


def _time(filter: Filter, value: datetime, wanted: Pushed) -> Pushed | None:
    """Postgres is asked for ">=" and "<", which are wide enough for "=" and ">" too."""
    if isinstance(filter, EqualTo | GreaterThan | GreaterThanOrEqual):
        known = wanted.messages.from_time
        return _with(wanted, from_time=value if known is None else max(known, value))
    if isinstance(filter, LessThan):
        known = wanted.messages.to_time
        return _with(wanted, to_time=value if known is None else min(known, value))
    return None


def _with(wanted: Pushed, **changes: Any) -> Pushed:
    return replace(wanted, messages=replace(wanted.messages, **changes))
