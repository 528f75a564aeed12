"""Waiting for a condition, with a deadline that only a failure reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")


def until(condition: Callable[[], _Value], what: str, *, seconds: float = 30) -> _Value:
    """The first true value of a condition, asked again and again."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return value
