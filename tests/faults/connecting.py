"""Connecting while Postgres or a server may be down for a moment."""

from __future__ import annotations

import time
from typing import Any, Final

import postbus

_SECONDS: Final = 60


def connect(url: str, **options: Any) -> postbus.Bus:
    """As `postbus.connect`, but try again until somebody is there."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            return postbus.connect(url, **options)
        except postbus.Unavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
