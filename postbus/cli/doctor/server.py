"""Checks of a server over HTTP: whether it is ready and accepts this token, and its clock."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from postbus.cli import as_curl, output
from postbus.cli.target import Target
from postbus.doctor.finding import Finding
from postbus.model.errors import Error, NotAllowed, NotFound
from postbus.operations import streams

if TYPE_CHECKING:
    from postbus.http._sync.client import HttpClient

_CLOCK_SECONDS: Final = 2.0
_NOT_LOOKED_AT: Final = (
    "not looked at over HTTP: Postgres, its settings and locks, slots, bloat, retention, dead letters"
)
_ADVICE: Final = "run it where Postgres can be reached: postbus doctor --url postgresql://…"


def check(target: Target) -> Iterator[Finding]:
    """Check the server."""
    with as_curl.client(target) as client:
        before = time.monotonic()
        try:
            client.check()
        except Error as error:
            yield Finding(
                "server", "problem", error.message, error.hint_for("command line") or "check that it runs: postbus up"
            )
            return
        took = time.monotonic() - before
        yield Finding("server", "ok", f"the server at {client.url} is ready, and answered in {took * 1000:,.0f} ms")
        try:
            listed = client.call("GET", "/api/overview", repeatable=True).data
        except NotAllowed as error:
            hint = "give a token: POSTBUS_TOKEN, or postbus context create NAME --url … --token env:NAME"
            may = "note" if target.token is not None else "problem"
            yield Finding("server", may, error.message, error.hint_for("command line") or hint)  # type: ignore[arg-type]
        except Error as error:
            yield Finding("server", "problem", error.message, error.hint_for("command line"))
        else:
            yield Finding("server", "ok", f"it accepts our requests: {output.counted(len(listed), 'stream')}")
            yield from _postgres(client)
        yield from clock(client.clock(), datetime.now(UTC))
    yield from _safety(target)


def _postgres(client: HttpClient) -> Iterator[Finding]:
    """What the server finds."""
    try:
        found = client.call("GET", streams.DOCTOR.path, repeatable=True).data
    except (NotAllowed, NotFound):
        # The token is for some streams, or the server of a former release.
        yield Finding("postgres", "note", _NOT_LOOKED_AT, _ADVICE)
    except Error as error:
        yield Finding("postgres", "problem", error.message, error.hint)
    else:
        for each in found:
            yield Finding(**{field.name: each[field.name] for field in fields(Finding)})


def clock(theirs: datetime | None, ours: datetime) -> Iterator[Finding]:
    """Whether the clocks agree. The server reports its own to the second."""
    if theirs is None:
        return
    ahead = (ours - theirs).total_seconds()
    if not -_CLOCK_SECONDS < ahead < _CLOCK_SECONDS + 1:
        text = f"the clock of this machine is {abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the server's"
        yield Finding("clock", "warning", text, "synchronize both clocks (NTP)")
    else:
        yield Finding("clock", "ok", "the clocks of this machine and the server agree to within two seconds")


def _safety(target: Target) -> Iterator[Finding]:
    parts = urlsplit(target.url or "")
    if parts.scheme == "http" and target.token is not None and not _is_near(parts.hostname or ""):
        yield Finding(
            "server",
            "warning",
            "the token is sent without encryption",
            "serve https: postbus up --tls-cert … --tls-key …",
        )


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
