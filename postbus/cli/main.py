"""The `postbus` command: what there is of it so far."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import postbus
from postbus.cli import consumers, dead, messages, schedule, serving, streams, tokens
from postbus.db import migrations
from postbus.db import url as urls
from postbus.db.embedded import EmbeddedServer

app = typer.Typer(
    help="Postbus turns the Postgres you already run into a message bus.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(streams.app, name="stream")
app.add_typer(messages.app, name="message")
app.add_typer(consumers.app, name="consumer")
app.command("receive")(consumers.receive)
app.add_typer(dead.app, name="dead")
app.add_typer(schedule.app, name="schedule")
app.add_typer(tokens.app, name="token")

Url = Annotated[
    str | None, typer.Option("--url", envvar="POSTBUS_URL", help="The Postgres to use; without it, the embedded one.")
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="POSTBUS_DATA_DIR", help="Where the embedded Postgres lives."),
]


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"postbus {postbus.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """Postbus turns the Postgres you already run into a message bus."""


@app.command()
def migrate(
    url: Url = None,
    data_dir: DataDir = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the SQL that would be run, and do nothing.")
    ] = False,
) -> None:
    """Install Postbus in a database, or bring it up to date.

    Example: postbus migrate --url postgresql://me@db.example.com/app
    """
    chosen = urls.choose(url)
    if chosen is not None:
        _migrate(chosen, dry_run=dry_run)
        return
    with EmbeddedServer(data_dir) as server:
        _migrate(server.url, dry_run=dry_run)


def _migrate(url: str, *, dry_run: bool) -> None:
    steps = migrations.migrate(url, dry_run=dry_run)
    for step in steps:
        typer.echo(f"{'would run' if dry_run else 'done'}: {step.name}", err=True)
        if dry_run:
            typer.echo(step.statements)
    if not steps:
        typer.echo("nothing to do: the database is up to date", err=True)


@app.command()
def up(
    url: Url = None,
    data_dir: DataDir = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any that is free.")] = 7376,
    pg_port: Annotated[
        int | None,
        typer.Option(
            "--pg-port", min=1, max=65535, help="Open the embedded Postgres on this TCP port, on loopback only."
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="How many processes serve.")] = 1,
    require_tokens: Annotated[
        bool, typer.Option("--require-tokens", help="Ask for tokens on a loopback address too.")
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve everybody who can reach the address, without tokens.")
    ] = False,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="A certificate, as a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its key, as a PEM file.")] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Write a line of JSON to stderr for each request.")
    ] = True,
) -> None:
    """Run Postbus until Ctrl-C: the HTTP server, its maintenance, and the embedded Postgres unless a URL names another.

    Example: postbus up --port 7376
    """
    try:
        from postbus.server.settings import Settings
    except ImportError as error:
        raise postbus.Error("the server is not installed", "run: pip install 'postbus[server]'") from error

    def settings(database: str) -> Settings:
        return Settings(
            url=database,
            host=host,
            port=port,
            insecure=insecure,
            require_tokens=require_tokens,
            tls_certificate=tls_cert,
            tls_key=tls_key,
            workers=workers,
            access_log=access_log,
        )

    chosen = urls.choose(url)
    if chosen is not None:
        serving.serve(settings(chosen), chosen)
        return
    with EmbeddedServer(data_dir, port=pg_port) as server:
        migrations.migrate(server.url)
        serving.serve(settings(server.url), server.url if pg_port is None else server.tcp_url)


def run() -> None:
    """Run the command; an error of Postbus is two lines, what happened and what to do."""
    try:
        app()
    except postbus.Error as error:
        typer.echo(f"error: {error.message}", err=True)
        if error.hint is not None:
            typer.echo(f"hint:  {error.hint}", err=True)
        sys.exit(error.exit_status)
