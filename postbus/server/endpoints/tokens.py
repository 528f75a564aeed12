"""Tokens: create, list, revoke."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, field

from postbus.model.token import SCOPES, Scope, Token
from postbus.operations import tokens
from postbus.operations.call import Route
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Time, moment
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()

StreamPattern = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_*-]{1,63}$", description="A stream's name; “*” stands for any characters")
]
TokenName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.@ -]{1,100}$")]


class NewToken(Struct, forbid_unknown_fields=True):
    name: TokenName
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=3)]
    streams: Annotated[list[StreamPattern], Meta(min_length=1, max_length=100)] = field(default_factory=lambda: ["*"])
    rate_limit: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None
    expires_at: Time | None = None
    aws: bool = False


class NewApiKey(Struct, forbid_unknown_fields=True):
    """A token that allows everything, as Sequin's keys do."""

    name: TokenName = "api key"


class StoredToken(Struct):
    id: str
    name: str
    scopes: list[str]
    streams: list[str]
    rate_limit: float | None
    inserted_at: datetime | None
    expires_at: datetime | None


class CreatedToken(StoredToken):
    """`token` is shown only in this response. So is `secret_access_key`, of a key pair for clients of AWS, with `aws`."""

    token: str
    access_key_id: str | None = None
    secret_access_key: str | None = None


class RevokedToken(Struct):
    id: str
    deleted: bool = True


@endpoints.add(tokens.LIST)
async def list_tokens(call: Call) -> Data[list[StoredToken]]:
    """List tokens, without revoked ones."""
    return Data([_stored(each) for each in await call.bus.tokens.list_all()])


@endpoints.add(tokens.CREATE, invalid_status=422)
async def create_token(call: Call, body: NewToken) -> Data[CreatedToken]:
    """Create a token."""
    return await _create(call, body)


@endpoints.add(tokens.REVOKE)
async def revoke_token(call: Call) -> Data[RevokedToken]:
    """Revoke a token."""
    return await _revoke(call)


@endpoints.add(Route("GET", "/api/api_keys", "manage", on_all_streams=True))
async def list_api_keys(call: Call) -> Data[list[StoredToken]]:
    """List the tokens, by Sequin's name for them."""
    return await list_tokens(call)


@endpoints.add(Route("POST", "/api/api_keys", "manage", on_all_streams=True), invalid_status=422)
async def create_api_key(call: Call, body: NewApiKey | None = None) -> Data[CreatedToken]:
    """Create a token that allows everything."""
    return await _create(call, NewToken((body or NewApiKey()).name, list(SCOPES)))


@endpoints.add(Route("DELETE", "/api/api_keys/{id}", "manage", on_all_streams=True))
async def revoke_api_key(call: Call) -> Data[RevokedToken]:
    """Revoke a token, by Sequin's name for it."""
    return await _revoke(call)


async def _create(call: Call, wanted: NewToken) -> Data[CreatedToken]:
    created = await call.bus.tokens.create(
        wanted.name,
        scopes=wanted.scopes,
        streams=wanted.streams,
        rate_limit=wanted.rate_limit,
        expires_at=moment(wanted.expires_at),
        aws=wanted.aws,
    )
    stored = _stored(created.token)
    return Data(
        CreatedToken(
            **{name: getattr(stored, name) for name in stored.__struct_fields__},
            token=created.text,
            access_key_id=created.access_key_id,
            secret_access_key=created.secret_access_key,
        )
    )


async def _revoke(call: Call) -> Data[RevokedToken]:
    number = call.request.parameters["id"]
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if not is_number or not await call.bus.tokens.revoke(int(number)):
        raise Problem(404, "not_found", f'token "{number[:80]}" does not exist')
    call.state.guard.forget()
    return Data(RevokedToken(number))


def _stored(token: Token) -> StoredToken:
    return StoredToken(
        id=str(token.id),
        name=token.name,
        scopes=list(token.scopes),
        streams=list(token.streams),
        rate_limit=token.rate_limit,
        inserted_at=token.created_at,
        expires_at=token.expires_at,
    )
