"""Tokens for the HTTP server. Postgres only stores their digests."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from postbus.codec import answers, parameters, rows
from postbus.model.token import NewToken, Scope, Token
from postbus.operations.call import Call, Http, Route, Sql, first

LIST: Final = Route("GET", "/api/tokens", "manage", on_all_streams=True)
CREATE: Final = Route("POST", "/api/tokens", "manage", on_all_streams=True)
REVOKE: Final = Route("DELETE", "/api/tokens/{id}", "manage", on_all_streams=True)
_PREFIX: Final = "pb_"
_CREATE: Final = "select t.* from postbus.create_token($1, $2, $3, $4, $5, $6) as t"
_CREATE_WITH_KEY: Final = (
    "select t.*, k.* from postbus.create_token($1, $2, $3, $4, $5, $6) as t, lateral postbus.create_aws_key(t.id) as k"
)


def new_text() -> str:
    """A new token: 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def create(
    name: str,
    *,
    scopes: Sequence[Scope],
    streams: Sequence[str],
    rate_limit: float | None,
    expires_at: datetime | None,
    aws: bool,
) -> Call[NewToken]:
    text = new_text()
    return Call(
        Sql(
            _CREATE_WITH_KEY if aws else _CREATE,
            (
                name,
                digest_of(text),
                parameters.text_array(scopes),
                parameters.text_array(streams),
                rate_limit,
                expires_at,
            ),
            lambda found: NewToken(text, rows.token(found[0][:9]), *found[0][9:]),
        ),
        Http(
            CREATE,
            (),
            answers.new_token,
            body={
                "name": name,
                "scopes": list(scopes),
                "streams": list(streams),
                "rate_limit": rate_limit,
                "expires_at": expires_at,
                "aws": aws or None,
            },
        ),
    )


def list_all() -> Call[list[Token]]:
    return Call(
        Sql("select t.* from postbus.list_tokens() as t", (), lambda found: [rows.token(row) for row in found]),
        Http(LIST, (), lambda answer: [answers.token(each) for each in answer.data]),
        repeatable=True,
    )


def revoke(id: int) -> Call[bool]:
    return Call(
        Sql("select postbus.revoke_token($1)", (id,), lambda found: bool(first(found))),
        Http(REVOKE, (str(id),), lambda answer: True),
        repeatable=True,
    )


def find(digest: str) -> Call[Token | None]:
    """The token of a request. Only the server runs this."""
    return Call(
        Sql(
            "select t.* from postbus.find_token($1) as t",
            (digest,),
            lambda found: rows.token(found[0]) if found else None,
        ),
        None,
        repeatable=True,
    )


def find_key(access_key_id: str) -> Call[tuple[str, str] | None]:
    """The digest of the token that a key pair belongs to, and the secret. Only the server runs this."""
    return Call(
        Sql(
            "select k.digest, k.secret_access_key from postbus_data.find_aws_key($1) as k",
            (access_key_id,),
            lambda found: (found[0][0], found[0][1]) if found else None,
        ),
        None,
        repeatable=True,
    )
