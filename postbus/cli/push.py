"""`postbus push`: all endpoints, and a process that sends to them. Commands for one endpoint are in consumer_push.py."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer

import postbus
from postbus.cli import output
from postbus.cli.global_options import TARGET, Command, Commands, with_options
from postbus.cli.options import open_bus
from postbus.cli.target import postgres_url
from postbus.db.url import without_password
from postbus.model.push import PushInfo

app = Commands("Endpoints of push consumers: list them; send to them.")
PushAllow = Annotated[
    list[str] | None,
    typer.Option(
        "--push-allow",
        help="A private network such as 10.0.0.0/8, or the name of a host, to which requests may be sent, also by http; "
        "may be repeated.",
    ),
]
PushAllowHttp = Annotated[
    bool, typer.Option("--push-allow-http", help="Send requests by http to any endpoint, and not only by https.")
]
_POOL_SIZE: Final = 10


@app.command("ls")
def ls() -> None:
    """List endpoints, and how they do.

    Example: postbus push ls
    """
    with open_bus() as bus:
        found = bus.list_pushes()
    output.emit(
        found,
        ("stream", "consumer", "url", "mode", "state", "last_success", "last_failure", "reason"),
        empty="no endpoints yet; set one: postbus consumer push set STREAM CONSUMER https://…",
        shown=_shown,
    )


def run(push_allow: PushAllow = None, push_allow_http: PushAllowHttp = False) -> None:
    """Send to the endpoints of all push consumers until Ctrl-C. Servers do so, too; any number of processes may.

    Example: postbus push run --url postgresql://…
    """
    if any(find_spec(package) is None for package in ("aiohttp", "ssrfguard")):
        raise postbus.Error("sending is not installed", "run: pip install 'postbus[server]'")
    from postbus.http.guard import Guard

    guard = Guard(push_allow or (), allow_http=push_allow_http)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with postgres_url(for_what="push run") as url:
        asyncio.run(_send(url, guard))
    typer.echo("stopped", err=True)


# It sends by Postgres itself, so that there is no request to print.
typer.Typer.command(app, "run", cls=Command)(with_options(run, TARGET))


async def _send(url: str, guard: Any) -> None:
    from postbus.push.service import PushService

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with await postbus.connect_async(url, pool_size=_POOL_SIZE) as bus:
        service = PushService(bus, guard)
        service.start()
        output.say(f"sending for {without_password(url)}; stop it with Ctrl-C")
        with contextlib.suppress(asyncio.CancelledError):
            await stopped.wait()
        await service.stop()


def _shown(found: PushInfo) -> dict[str, Any]:
    return {
        "stream": found.stream,
        "consumer": found.consumer,
        "url": found.url.partition("?")[0],
        "mode": found.mode,
        "state": found.state,
        "last_success": found.last_success_at,
        "last_failure": found.last_failure_at,
        "reason": found.reason or (found.last_error if found.first_failure_at else None),
    }
