"""The `postbus` command: what there is of it so far."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

import postbus
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

Url = Annotated[
    str | None, typer.Option("--url", envvar="POSTBUS_URL", help="The Postgres to use; without it, the embedded one.")
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="POSTBUS_DATA_DIR", help="Where the embedded Postgres lives."),
]
MAINTENANCE_SECONDS = 5.0
SWEEP_SECONDS = 1.0


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
    pg_port: Annotated[
        int | None,
        typer.Option(
            "--pg-port", min=1, max=65535, help="Open the embedded Postgres on this TCP port, on loopback only."
        ),
    ] = None,
) -> None:
    """Run Postbus until Ctrl-C: the embedded Postgres, unless a URL names another, and its maintenance.

    Example: postbus up --pg-port 7377
    """
    chosen = urls.choose(url)
    if chosen is not None:
        _serve(chosen, chosen)
        return
    with EmbeddedServer(data_dir, port=pg_port) as server:
        migrations.migrate(server.url)
        _serve(server.url, server.url if pg_port is None else server.tcp_url)


def _serve(url: str, shown_url: str) -> None:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with postbus.connect(url) as bus:
        _greet(bus, shown_url)
        next_maintenance = time.monotonic()
        while not stopped.wait(SWEEP_SECONDS):
            try:
                bus.sweep()
                if time.monotonic() >= next_maintenance:
                    bus.maintain()
                    next_maintenance = time.monotonic() + MAINTENANCE_SECONDS
            except postbus.Unavailable as error:
                typer.echo(f"maintenance is put off: {error.message}", err=True)
    typer.echo("stopped", err=True)


def _greet(bus: postbus.Bus, shown_url: str) -> None:
    streams = len(bus.list_streams())
    typer.echo(f"Postbus {postbus.__version__} is up, with {streams} stream{'' if streams == 1 else 's'}.", err=True)
    typer.echo("Ctrl-C stops it. The Postgres of this bus:\n", err=True)
    typer.echo(shown_url)
    typer.echo(
        f"""
Try, in another terminal:

  psql '{shown_url}' -c "select postbus.create_stream('orders')"
  psql '{shown_url}' -c "select postbus.publish('orders', 'orders.cus_a.1', '{{\\"quantity\\": 4}}')"
  psql '{shown_url}' -c "select * from postbus.read('orders')"
""",
        err=True,
    )


def run() -> None:
    """Run the command; an error of Postbus is two lines, what happened and what to do."""
    try:
        app()
    except postbus.Error as error:
        typer.echo(f"error: {error.message}", err=True)
        if error.hint is not None:
            typer.echo(f"hint:  {error.hint}", err=True)
        sys.exit(error.exit_status)
