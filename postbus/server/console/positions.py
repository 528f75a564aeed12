"""Times and positions in a stream, as people write them into forms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from postbus.model.amounts import DURATION, seconds_of
from postbus.model.consumer import Start
from postbus.server.console.parts import now
from postbus.server.console.visit import whole_number
from postbus.server.problems import Problem


def time_of(text: str, name: str) -> datetime | None:
    """A time, as a browser's field or a person writes it, or as so long ago: 10m. All times are UTC.

    Raises:
        Problem: 400.
    """
    text = text.strip()
    if not text:
        return None
    if DURATION.fullmatch(text):
        return now() - timedelta(seconds=seconds_of(text))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        hint = "write it as 2026-01-31 12:00, or as 10m for ten minutes ago"
        raise Problem(400, "invalid", f'{name}: "{text}" is not a time', hint=hint) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def range_of(text: str) -> tuple[int | None, int | None]:
    """Seqs from one to another, such as 100-200; the ends belong to it. Without a last one, all that follow.

    Raises:
        Problem: 400.
    """
    if not text.strip():
        return None, None
    first, _, last = text.partition("-")
    low = whole_number(first, "the first seq", least=1)
    return low, whole_number(last, "the last seq", least=low) if last.strip() else None


def position_of(form: Mapping[str, str]) -> tuple[Start | None, int | None, datetime | None]:
    """A position: a name, a seq or a time.

    Raises:
        Problem: 400.
    """
    kind, at = form.get("to", ""), form.get("at", "").strip()
    if kind == "earliest":
        return "earliest", None, None
    if kind == "latest":
        return "latest", None, None
    if kind == "seq":
        return None, whole_number(at, "the seq", least=1), None
    if kind == "time" and at:
        return None, None, time_of(at, "the time")
    raise Problem(400, "invalid", "the position is not given", hint="choose where to move to, and give the seq or time")
