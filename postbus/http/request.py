"""A request to a server, which `--as-curl` prints instead of sending it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TOKEN_VARIABLE: Final = "POSTBUS_TOKEN"  # noqa: S105


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. The token is never part of it.

    Attributes:
        method: GET, POST, PATCH or DELETE.
        url: Its URL, with the query.
        headers: Its headers, without the token's.
        body: Its JSON, or None.
        has_token: Whether it is sent with a token, in the header `Authorization: Bearer …`.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    has_token: bool = False

    def as_curl(self, *, body: str | None = None) -> str:
        """A command that sends it; the token is taken from the environment variable POSTBUS_TOKEN.

        Args:
            body: What the shell is to send instead of its body, such as a variable in quotes.
        """
        parts = ["curl"]
        if self.method != ("GET" if self.body is None else "POST"):
            parts += ["-X", self.method]
        parts.append(shlex.quote(self.url))
        for name, value in self.headers.items():
            parts += ["-H", shlex.quote(f"{name}: {value}")]
        if self.has_token:
            parts += ["-H", f'"Authorization: Bearer ${TOKEN_VARIABLE}"']
        if self.body is not None:
            parts += ["--data-binary", body or shlex.quote(self.body.decode())]
        return " ".join(parts)
