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
) -> Call[NewToken]:
    text = new_text()
    return Call(
        Sql(
            "select t.* from postbus.create_token($1, $2, $3, $4, $5, $6) as t",
            (
                name,
                digest_of(text),
                parameters.text_array(scopes),
                parameters.text_array(streams),
                rate_limit,
                expires_at,
            ),
            lambda found: NewToken(text, rows.token(found[0])),
        ),
        Http(
            CREATE,
            (),
            lambda answer: NewToken(answer.data["token"], answers.token(answer.data)),
            body={
                "name": name,
                "scopes": list(scopes),
                "streams": list(streams),
                "rate_limit": rate_limit,
                "expires_at": expires_at,
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
