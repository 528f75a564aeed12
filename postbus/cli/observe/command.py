"""`postbus observe`: the command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from postbus.cli.options import complete_consumer, complete_stream, seconds
from postbus.cli.target import find_target
from postbus.model.errors import Error, InvalidInput

# Short, so that a lost connection is reported soon.
_CONNECT_SECONDS = 5.0


def observe(
    stream: Annotated[
        str | None, typer.Argument(help="A stream, to see its messages.", autocompletion=complete_stream)
    ] = None,
    consumer: Annotated[
        str | None, typer.Argument(help="A consumer, to see its deliveries.", autocompletion=complete_consumer)
    ] = None,
    interval: Annotated[str, typer.Option(help="The time between refreshes, such as 2s; at least 200ms.")] = "2s",
) -> None:
    """Watch streams, consumers and messages live, like htop. The keys are listed at the bottom.

    Example: postbus observe orders billing
    """
    if not sys.stdout.isatty():
        raise InvalidInput("observe needs a terminal", "in a script use: postbus stream ls --json")
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise Error("observe is not installed", "run: pip install 'postbus[cli]'") from error
    import asyncio

    asyncio.run(_observe(stream, consumer, max(0.2, seconds(interval) or 2.0)))


async def _observe(stream: str | None, consumer: str | None, interval: float) -> None:
    import postbus
    from postbus.cli.observe.app import Observe
    from postbus.db.url import without_password

    target = find_target()
    async with await postbus.connect_async(
        target.url, token=target.token, data_dir=target.data_dir, pool_size=2, connect_timeout=_CONNECT_SECONDS
    ) as bus:
        if stream is not None:
            await bus.consumer_overview(stream)  # One that does not exist is an error here.
        shown = "embedded Postgres" if target.url is None else without_password(target.url).partition("?")[0]
        await Observe(bus, shown_url=shown, interval=interval, stream=stream, consumer=consumer).run_async()
