"""`postbus token`: tokens for the HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from postbus.db import migrations
from postbus.db import url as urls
from postbus.db.embedded import EmbeddedServer
from postbus.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from postbus.server.access import Tokens

app = typer.Typer(help="Tokens for the HTTP server.", no_args_is_help=True)
_Result = TypeVar("_Result")

Url = Annotated[str | None, typer.Option("--url", envvar="POSTBUS_URL", help="The Postgres to use.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", envvar="POSTBUS_DATA_DIR", help="The embedded Postgres.")]


@app.command()
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
    url: Url = None,
    data_dir: DataDir = None,
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
    text, _ = _with_tokens(
        url,
        data_dir,
        lambda tokens: tokens.create(
            name, scopes=scopes, streams=stream or ["*"], rate_limit=rate, expires_at=expires_at
        ),
    )
    typer.echo(text)


@app.command("ls")
def list_tokens(url: Url = None, data_dir: DataDir = None) -> None:
    """List the tokens that were not revoked.

    Example: postbus token ls
    """
    for token in _with_tokens(url, data_dir, lambda tokens: tokens.list()):
        until = "" if token.expires_at is None else f"  until {token.expires_at:%Y-%m-%d %H:%M}"
        typer.echo(f"{token.id}  {token.name}  {','.join(token.scopes)}  {','.join(token.streams)}{until}")


@app.command("rm")
def revoke(id: Annotated[int, typer.Argument(help="Its id.")], url: Url = None, data_dir: DataDir = None) -> None:
    """Revoke a token.

    Example: postbus token rm 3
    """
    if not _with_tokens(url, data_dir, lambda tokens: tokens.revoke(id)):
        raise NotFound(f"token {id} does not exist", "see: postbus token ls")


def _with_tokens(url: str | None, data_dir: Path | None, use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
    chosen = urls.choose(url)
    if chosen is not None:
        return asyncio.run(_use(chosen, use))
    with EmbeddedServer(data_dir) as server:
        migrations.migrate(server.url)
        return asyncio.run(_use(server.url, use))


async def _use(url: str, use: Callable[[Tokens], Awaitable[_Result]]) -> _Result:
    from postbus.db._async.database import AsyncDatabase
    from postbus.server.access import Tokens

    async with AsyncDatabase(url, pool_size=1) as database:
        await database.check_installed()
        return await use(Tokens(database))
