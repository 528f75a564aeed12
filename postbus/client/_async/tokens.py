"""The tokens of a bus, which the HTTP server requires."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from postbus.client._async.base import AsyncClient
from postbus.model.errors import NotFound
from postbus.model.token import SCOPES, NewToken, Scope, Token
from postbus.operations import tokens as operations


class AsyncTokens(AsyncClient):
    """Creates, lists and revokes tokens; get it from `bus.tokens`."""

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[Scope] = SCOPES,
        streams: Sequence[str] = ("*",),
        rate_limit: float | None = None,
        expires_at: datetime | None = None,
        aws: bool = False,
    ) -> NewToken:
        """Create a token.

        Args:
            name: A name for people.
            scopes: What it allows: publish, consume, manage.
            streams: Names of streams; "*" stands for any characters.
            rate_limit: How many requests per second it allows; None sets no limit.
            expires_at: When it expires; None never.
            aws: Also make a key pair, with which clients of Amazon SQS sign. Its secret is stored as it is, and shown this once.

        Returns:
            The token and its permissions. Its `text` is not stored anywhere.
        """
        call = operations.create(
            name, scopes=scopes, streams=streams, rate_limit=rate_limit, expires_at=expires_at, aws=aws
        )
        return await self._transport.run(call)

    async def list_all(self) -> list[Token]:
        """All tokens except revoked ones, by id."""
        return await self._transport.run(operations.list_all())

    async def revoke(self, id: int) -> bool:
        """Revoke a token; False if no token has that id. Revoking it again changes nothing."""
        try:
            return await self._transport.run(operations.revoke(id))
        except NotFound:
            return False

    async def find(self, digest: str) -> Token | None:
        """The token with this SHA-256. Only possible over Postgres."""
        return await self._transport.run(operations.find(digest))

    async def find_key(self, access_key_id: str) -> tuple[str, str] | None:
        """The SHA-256 of the token that a key pair belongs to, and its secret. Only possible over Postgres."""
        return await self._transport.run(operations.find_key(access_key_id))
