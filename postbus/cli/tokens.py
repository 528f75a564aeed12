"""`postbus token`: tokens for the HTTP server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postbus.cli import output, targets
from postbus.cli.shared import Commands
from postbus.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from postbus.server.access import Token, Tokens

app = Commands("Tokens for the HTTP server.")
_Result = TypeVar("_Result")


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="publish, consume or manage; all of them without it.")
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option("--stream", help="A stream's name; * stands for any characters.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="How long it is valid; for ever without it.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="How many requests per second at most.")] = None,
) -> None:
    """Create a token and print it, this once.

    Example: postbus token create billing --scope consume --stream 'orders*' --days 90
    """
    from postbus.server.access import SCOPES

    scopes = [each for each in SCOPES if scope is None or each in scope]
    unknown = set(scope or ()) - set(SCOPES)
    if unknown:
        raise InvalidInput(f"there is no scope {sorted(unknown)[0]!r}", f"there are: {', '.join(SCOPES)}")
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    text, token = _with_tokens(
        lambda tokens: tokens.create(
            name, scopes=scopes, streams=stream or ["*"], rate_limit=rate, expires_at=expires_at
        ),
    )
    if output.as_json():
        output.emit_json({"token": text, **_shown(token)})
        return
    typer.echo(text)
    output.say(f"token {token.id} is shown this once; revoke it with: postbus token rm {token.id}")


@app.command("ls")
def ls() -> None:
    """List the tokens that were not revoked.

    Example: postbus token ls
    """
    found = _with_tokens(lambda tokens: tokens.list())
    if output.as_json():
        for token in found:
            output.emit_json(_shown(token))
        return
    columns = ("id", "name", "scopes", "streams", "rate_limit", "expires_at")
    output.emit(found, columns, empty="no tokens yet; create one: postbus token create NAME")


@app.command("rm")
def rm(id: Annotated[int, typer.Argument(help="Its id.")]) -> None:
    """Revoke a token.

    Example: postbus token rm 3
    """
    if not _with_tokens(lambda tokens: tokens.revoke(id)):
        raise NotFound(f"token {id} does not exist", "see: postbus token ls")
    output.done(f"revoked token {id}", revoked=id)


def _shown(token: Token) -> dict[str, Any]:
    return {field.name: getattr(token, field.name) for field in fields(token) if field.name != "digest"}


def _with_tokens(use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
    import asyncio

    with targets.postgres(for_what="token") as url:
        return asyncio.run(_use(url, use))


async def _use(url: str, use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
    from postbus.db._async.database import AsyncDatabase
    from postbus.server.access import Tokens

    async with AsyncDatabase(url, pool_size=1) as database:
        await database.check_installed()
        return await use(Tokens(database))
