"""Tokens for the HTTP server: what they allow."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

Scope = Literal["publish", "consume", "manage"]
SCOPES: Final[tuple[Scope, ...]] = ("publish", "consume", "manage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a token allows. The token itself is stored nowhere, only its digest.

    Attributes:
        id: Its number.
        name: The name that it got when it was created.
        scopes: publish (send messages), consume (receive, read and ack), manage (everything else).
        streams: Names of the streams that it is for; “*” stands for any characters.
        rate_limit: How many requests per second it may make; None for any number.
        created_at: When it was created.
        expires_at: When it ends; None never.
        revoked_at: When it was revoked.
        digest: The SHA-256 of the token, in hexadecimal; empty over HTTP.
    """

    id: int
    name: str
    scopes: Sequence[str]
    streams: Sequence[str]
    rate_limit: float | None
    created_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None = None
    digest: str = ""

    @property
    def is_valid(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or datetime.now(UTC) < self.expires_at)

    @property
    def is_for_all_streams(self) -> bool:
        return "*" in self.streams

    def may(self, scope: Scope, stream: str | None) -> bool:
        """Whether it allows this on that stream or, with None, on the bus as a whole."""
        return scope in self.scopes and (self.is_for_all_streams if stream is None else self.sees(stream))

    def sees(self, stream: str) -> bool:
        return "*" in self.streams or any(fnmatch.fnmatchcase(stream, pattern) for pattern in self.streams)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just created.

    Attributes:
        text: The token. It is shown this once.
        token: What it allows.
        access_key_id: Of a key pair for clients of AWS, if one was made with it.
        secret_access_key: Its secret. It is shown this once.
    """

    text: str
    token: Token
    access_key_id: str | None = None
    secret_access_key: str | None = None
