"""Where tokens are kept: in Postgres, which a server shows over HTTP. Both say the same of a token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from postbus.cli import requests, targets
from postbus.model.errors import NotFound

if TYPE_CHECKING:
    from postbus.cli.targets import Target
    from postbus.server.access import Tokens

_Result = TypeVar("_Result")
Shown = dict[str, Any]


class TokenStore(Protocol):
    """What can be done with tokens."""

    def create(
        self, name: str, scopes: Sequence[str], streams: Sequence[str], rate: float | None, expires_at: datetime | None
    ) -> Shown: ...

    def list(self) -> Sequence[Shown]: ...

    def revoke(self, id: int) -> bool: ...


class InPostgres:
    """Tokens in the Postgres that the command works on."""

    def create(
        self, name: str, scopes: Sequence[str], streams: Sequence[str], rate: float | None, expires_at: datetime | None
    ) -> Shown:
        text, token = self._use(
            lambda tokens: tokens.create(
                name,
                scopes=scopes,  # type: ignore[arg-type]
                streams=streams,
                rate_limit=rate,
                expires_at=expires_at,
            )
        )
        return {"token": text, **_shown(token)}

    def list(self) -> Sequence[Shown]:
        return [_shown(token) for token in self._use(lambda tokens: tokens.list())]

    def revoke(self, id: int) -> bool:
        return self._use(lambda tokens: tokens.revoke(id))

    def _use(self, use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
        with targets.postgres(for_what="token") as url:
            return asyncio.run(_with_tokens(url, use))


class OverHttp:
    """Tokens of a server."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def create(
        self, name: str, scopes: Sequence[str], streams: Sequence[str], rate: float | None, expires_at: datetime | None
    ) -> Shown:
        given = {
            "name": name,
            "scopes": list(scopes),
            "streams": list(streams),
            "rate_limit": rate,
            "expires_at": None if expires_at is None else expires_at.isoformat(),
        }
        return _renamed(self._call("POST", "/api/tokens", {each: of for each, of in given.items() if of is not None}))

    def list(self) -> Sequence[Shown]:
        return [_renamed(each) for each in self._call("GET", "/api/tokens")]

    def revoke(self, id: int) -> bool:
        try:
            self._call("DELETE", f"/api/tokens/{id}")
        except NotFound:
            return False
        return True

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        import orjson

        with requests.client(self._target) as client, requests.ending():
            return client.call(method, path, body=None if body is None else orjson.dumps(body)).data


def _shown(token: Any) -> Shown:
    return {
        field.name: getattr(token, field.name) for field in fields(token) if field.name not in ("digest", "revoked_at")
    }


def _renamed(found: dict[str, Any]) -> Shown:
    """The server's words are Sequin's."""
    created_at = found.pop("inserted_at")
    return {**found, "id": int(found["id"]), "created_at": created_at}


async def _with_tokens(url: str, use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
    from postbus.db._async.database import AsyncDatabase
    from postbus.server.access import Tokens

    async with AsyncDatabase(url, pool_size=1) as database:
        await database.check_installed()
        return await use(Tokens(database))
