"""`postbus token`: tokens for the HTTP server."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.global_options import Commands
from postbus.cli.options import open_bus
from postbus.cli.target import find_target
from postbus.model.errors import InvalidInput, NotFound
from postbus.model.token import SCOPES, Token

app = Commands("Tokens for the HTTP server.")


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="publish, consume or manage; may be repeated. Without it, all of them."),
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option("--stream", help="A stream's name; * stands for any characters.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", help="How long it is valid. Without it, it does not expire.")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="The largest number of requests per second.")] = None,
    aws: Annotated[
        bool, typer.Option("--aws", help="Also make a key pair, with which clients of Amazon SQS sign their requests.")
    ] = False,
) -> None:
    """Create a token and print it. It cannot be shown again.

    Example: postbus token create billing --scope consume --stream 'orders*' --days 90
    """
    scopes = [each for each in SCOPES if scope is None or each in scope]
    unknown = set(scope or ()) - set(SCOPES)
    if unknown:
        raise InvalidInput(f"{sorted(unknown)[0]!r} is not a scope", f"scopes are: {', '.join(SCOPES)}")
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with open_bus() as bus:
        created = bus.tokens.create(
            name, scopes=scopes, streams=stream or ["*"], rate_limit=rate, expires_at=expires_at, aws=aws
        )
    if output.as_json():
        pair = {"access_key_id": created.access_key_id, "secret_access_key": created.secret_access_key}
        output.emit_json({"token": created.text, **(pair if aws else {}), **_shown(created.token)})
        return
    typer.echo(created.text)
    if aws:
        typer.echo(f"AWS_ACCESS_KEY_ID={created.access_key_id}")
        typer.echo(f"AWS_SECRET_ACCESS_KEY={created.secret_access_key}")
    output.say(
        f"this is the only time token {created.token.id} is shown; revoke it with: postbus token rm {created.token.id}"
    )
    target = find_target()
    if target.is_http and target.token is None:
        output.say("note: this server asks nobody for a token; start it with: postbus up --require-tokens")
    elif not target.is_http:
        output.say("note: a server on a loopback address asks for tokens only with: postbus up --require-tokens")


@app.command("ls")
def ls() -> None:
    """List tokens, without revoked ones.

    Example: postbus token ls
    """
    columns = ("id", "name", "scopes", "streams", "rate_limit", "expires_at")
    with open_bus() as bus:
        found = bus.tokens.list_all()
    output.emit([_shown(each) for each in found], columns, empty="no tokens yet; create one: postbus token create NAME")


@app.command("rm")
def rm(id: Annotated[int, typer.Argument(help="Its id.")]) -> None:
    """Revoke a token.

    Example: postbus token rm 3
    """
    with open_bus() as bus:
        is_revoked = bus.tokens.revoke(id)
    if not is_revoked:
        raise NotFound(f"token {id} does not exist", "see: postbus token ls")
    output.done(f"revoked token {id}", revoked=id)


def _shown(token: Token) -> dict[str, Any]:
    return {
        field.name: getattr(token, field.name) for field in fields(token) if field.name not in ("digest", "revoked_at")
    }
