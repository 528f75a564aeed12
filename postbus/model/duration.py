"""Durations, which users give in seconds or as timedelta."""

from __future__ import annotations

from datetime import timedelta

from postbus.model.errors import InvalidInput

Duration = float | timedelta


def as_timedelta(duration: Duration | None) -> timedelta | None:
    """A duration as timedelta.

    Raises:
        InvalidInput: It is neither a number of seconds nor a timedelta.
    """
    if duration is None or isinstance(duration, timedelta):
        return duration
    if not isinstance(duration, int | float):
        raise InvalidInput(f"{duration!r} is not a duration", "give seconds, or a timedelta")
    try:
        return timedelta(seconds=duration)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{duration} is not a duration in seconds") from error


def as_seconds(duration: Duration | None) -> float | None:
    """A duration in seconds."""
    exact = as_timedelta(duration)
    return None if exact is None else exact.total_seconds()


def as_milliseconds(duration: Duration | None) -> int | None:
    """A duration in milliseconds, rounded."""
    exact = as_timedelta(duration)
    return None if exact is None else round(exact.total_seconds() * 1000)
