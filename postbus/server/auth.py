"""Authorizes requests by their tokens, and limits the rate of each token."""

from __future__ import annotations

import hmac
import time
from typing import Final

from postbus.model.advice import Advice
from postbus.model.errors import Unavailable
from postbus.model.token import SCOPES, Token
from postbus.operations.tokens import digest_of
from postbus.server.connection import Connection
from postbus.server.problems import Problem

# How long a process caches a token. A token that another process revokes keeps working for that long.
_SECONDS: Final = 1.0
_MOST_REMEMBERED: Final = 10_000
_TOKEN_NEEDED: Final = Advice("token_needed")


EVERYBODY: Final = Token(
    id=0,
    name="everybody",
    digest="",
    scopes=SCOPES,
    streams=("*",),
    rate_limit=None,
    created_at=None,
    expires_at=None,
    revoked_at=None,
)


class Guard:
    """Authorizes requests."""

    def __init__(self, connection: Connection, *, is_open: bool) -> None:
        self._connection = connection
        self._is_open = is_open
        self._known: dict[str, tuple[Token | None, float]] = {}
        self._keys: dict[str, tuple[tuple[str, str], float]] = {}
        self._buckets: dict[int, Bucket] = {}

    def forget(self) -> None:
        """Clear the cache, since a token was revoked here."""
        self._known.clear()
        self._keys.clear()

    async def identify(self, authorization: str | None) -> Token:
        """The token that a request carries.

        Raises:
            Problem: 401 when there is none that is valid, 429 when it is used too often.
            Unavailable: Postgres cannot be reached.
        """
        if self._is_open:
            return EVERYBODY
        kind, _, text = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise _unauthorized("a token is required")
        try:
            token = await self._find(digest_of(text.strip()))
        except Unavailable as error:
            # The original error names the address of Postgres, and the client is not yet authorized.
            raise Unavailable("tokens cannot be checked now, because Postgres cannot be reached") from error
        if token is None or not token.is_valid:
            raise _unauthorized("the token is not valid")
        self._count(token)
        return token

    async def find_key(self, access_key_id: str) -> tuple[Token, str] | None:
        """The token that a key pair belongs to, and its secret; None if there is no such pair, or the token is not valid."""
        (digest, secret), until = self._keys.get(access_key_id, (("", ""), 0.0))
        if time.monotonic() >= until:
            digest, secret = await self._connection.bus.tokens.find_key(access_key_id) or ("", "")
            if len(self._keys) >= _MOST_REMEMBERED:
                self._keys.clear()
            self._keys[access_key_id] = ((digest, secret), time.monotonic() + _SECONDS)
        token = await self._find(digest) if digest else None
        return (token, secret) if token is not None and token.is_valid else None

    def admit(self, token: Token) -> None:
        """Count a request that was signed with a token's key pair.

        Raises:
            Problem: 429 when it is used too often.
        """
        self._count(token)

    async def confirm(self, token: Token) -> None:
        """Refuse a request whose token is no longer valid.

        Raises:
            Problem: 401 when it was revoked or has expired meanwhile.
        """
        if self._is_open:
            return
        known = await self._find(token.digest)
        if known is None or not known.is_valid:
            raise _unauthorized("the token is no longer valid")

    async def _find(self, digest: str) -> Token | None:
        known, until = self._known.get(digest, (None, 0.0))
        if time.monotonic() >= until:
            known = await self._connection.bus.tokens.find(digest)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[digest] = (known, time.monotonic() + _SECONDS)
        # Postgres compared digests by its index; this compares them again in constant time.
        return known if known is not None and hmac.compare_digest(known.digest, digest) else None

    def _count(self, token: Token) -> None:
        if token.rate_limit is None:
            return
        bucket = self._buckets.get(token.id)
        if bucket is None or bucket.rate != token.rate_limit:
            bucket = self._buckets[token.id] = Bucket(token.rate_limit, time.monotonic())
        wait = bucket.take(time.monotonic())
        if wait > 0:
            raise Problem(
                429,
                "rate_limited",
                f"this token may make {token.rate_limit:g} requests per second",
                hint=f"try again in {wait:.1f} seconds",
                headers={"retry-after": str(max(1, round(wait)))},
            )


class Bucket:
    """A rate, with a burst of one second's worth."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._level = max(rate, 1.0)
        self._filled_at = now

    def take(self, now: float) -> float:
        """Take one; 0 if there was one, else how many seconds to wait."""
        self._level = min(max(self.rate, 1.0), self._level + (now - self._filled_at) * self.rate)
        self._filled_at = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self.rate


def _unauthorized(summary: str) -> Problem:
    return Problem(
        401,
        "unauthorized",
        summary,
        hint=_TOKEN_NEEDED.said("http"),
        advice=_TOKEN_NEEDED,
        headers={"www-authenticate": "Bearer"},
    )
