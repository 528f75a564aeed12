"""Finds the database that a URL, or the lack of one, means."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from postbus.model.errors import InvalidInput

_SCHEMES: Final = ("postgresql://", "postgres://")


def choose(url: str | None) -> str | None:
    """The URL to use: the given one, else POSTBUS_URL; None stands for the embedded Postgres.

    Raises:
        InvalidInput: The URL is not one of Postgres.
    """
    chosen = url or os.environ.get("POSTBUS_URL") or None
    if chosen is not None and not chosen.startswith(_SCHEMES):
        raise InvalidInput(
            f'"{without_password(chosen)}" is not a URL of Postgres', "it should look like postgresql://user@host/db"
        )
    return chosen


def without_password(url: str) -> str:
    """The URL without its password, for display."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))
