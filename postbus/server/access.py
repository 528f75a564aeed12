"""Who may do what: tokens, their scopes, and how many requests they may make."""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from postbus.db import tokens as statements
from postbus.db._async.database import AsyncDatabase
from postbus.model.errors import Unavailable
from postbus.server.connection import Connection
from postbus.server.problems import Problem

Scope = Literal["publish", "consume", "manage"]
SCOPES: Final[tuple[Scope, ...]] = ("publish", "consume", "manage")
_PREFIX: Final = "pb_"
# How long a process believes what it knows of a token: a token revoked elsewhere works that much longer.
_SECONDS: Final = 1.0
_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a token allows.

    Attributes:
        id: Its number.
        name: What it was called when it was created.
        digest: The SHA-256 of the token, in hexadecimal: the token itself is kept nowhere.
        scopes: publish (send messages), consume (receive, read and settle), manage (everything else).
        streams: The streams that it is for: names, in which “*” stands for any characters.
        rate_limit: How many requests per second it may make; None for any number.
        created_at: When it was created.
        expires_at: When it ends; None never.
        revoked_at: When it was revoked.
    """

    id: int
    name: str
    digest: str
    scopes: Sequence[str]
    streams: Sequence[str]
    rate_limit: float | None
    created_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None

    @property
    def is_valid(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or datetime.now(UTC) < self.expires_at)

    @property
    def is_for_all_streams(self) -> bool:
        return "*" in self.streams

    def may(self, scope: Scope, stream: str | None) -> bool:
        """Whether it allows this on that stream, or, with None, on the bus as a whole."""
        return scope in self.scopes and (self.is_for_all_streams if stream is None else self.sees(stream))

    def sees(self, stream: str) -> bool:
        return "*" in self.streams or any(fnmatch.fnmatchcase(stream, pattern) for pattern in self.streams)


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


def new_token() -> str:
    """A token that nobody can guess: 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens that are stored in Postgres."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[Scope],
        streams: Sequence[str],
        rate_limit: float | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[str, Token]:
        """A new token: its text, which is shown this once, and what is stored of it."""
        text = new_token()
        parameters = (
            name,
            digest_of(text),
            statements.names(scopes),
            statements.names(streams),
            rate_limit,
            expires_at,
        )
        (row,) = await self._database.rows(statements.CREATE, parameters)
        return text, _token(row)

    async def list(self) -> Sequence[Token]:
        """All tokens that were not revoked, by id."""
        return [_token(row) for row in await self._database.rows(statements.LIST, repeatable=True)]

    async def revoke(self, id: int) -> bool:
        """Revoke a token; False when there is none with that id."""
        ((revoked,),) = await self._database.rows(statements.REVOKE, (id,), repeatable=True)
        return bool(revoked)

    async def find(self, digest: str) -> Token | None:
        found = await self._database.rows(statements.FIND, (digest,), repeatable=True)
        return _token(found[0]) if found else None


def _token(row: tuple[object, ...]) -> Token:
    return Token(**dict(zip(Token.__dataclass_fields__, row, strict=True)))  # type: ignore[arg-type]


class Guard:
    """Lets requests in, or not."""

    def __init__(self, connection: Connection, *, is_open: bool) -> None:
        self._connection = connection
        self._is_open = is_open
        self._known: dict[str, tuple[Token | None, float]] = {}
        self._buckets: dict[int, Bucket] = {}

    def forget(self) -> None:
        """A token was revoked here: ask again."""
        self._known.clear()

    async def identify(self, authorization: str | None) -> Token:
        """The token that a request carries.

        Raises:
            Problem: 401 when there is none that is valid, 429 when it is used too often.
            Unavailable: Nobody can say.
        """
        if self._is_open:
            return EVERYBODY
        kind, _, text = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise _unauthorized("a token is needed")
        try:
            token = await self._find(digest_of(text.strip()))
        except Unavailable as error:
            # It says where Postgres is, and nobody knows yet who asks.
            raise Unavailable("tokens cannot be checked now, because Postgres cannot be reached") from error
        if token is None or not token.is_valid:
            raise _unauthorized("the token is not valid")
        self._count(token)
        return token

    async def confirm(self, token: Token) -> None:
        """Whether a token that a request came with is still valid.

        Raises:
            Problem: 401 when it was revoked or has expired meanwhile.
        """
        if self._is_open:
            return
        known = await self._find(token.digest)
        if known is None or not known.is_valid:
            raise _unauthorized("the token is not valid any more")

    async def _find(self, digest: str) -> Token | None:
        known, until = self._known.get(digest, (None, 0.0))
        if time.monotonic() >= until:
            known = await Tokens(self._connection.database).find(digest)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[digest] = (known, time.monotonic() + _SECONDS)
        # Postgres compared digests by its index; here it is done in constant time once more.
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
        """Take one; 0 when there was one, else in how many seconds there will be."""
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
        hint="send it as a header: Authorization: Bearer <token>; create one with: postbus token create",
        headers={"www-authenticate": "Bearer"},
    )
