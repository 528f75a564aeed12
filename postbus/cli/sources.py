"""`postbus source`: what feeds streams from outside."""

from __future__ import annotations

import logging
import signal
import sys
from typing import Annotated

import typer

from postbus.cli import output, webhook_sources
from postbus.cli.global_options import OUTPUT, TARGET, Command, Commands, with_options
from postbus.cli.options import open_bus
from postbus.cli.postgres_sources import COLUMNS, shown
from postbus.cli.postgres_sources import app as postgres
from postbus.cli.target import postgres_url

app = Commands("Sources: what feeds streams from outside.")
app.add_typer(
    postgres, name="postgres", help="Changes of Postgres tables: add, list, show, change, pause, resume, remove."
)
app.add_typer(webhook_sources.app, name="webhook")


@app.command("ls")
def ls() -> None:
    """List all Postgres sources.

    Example: postbus source ls
    """
    with open_bus() as bus:
        found = bus.sources.list_all()
    output.emit(found, COLUMNS, shown=shown, empty="no sources yet; add one: postbus source postgres add")


def run(
    names: Annotated[list[str] | None, typer.Argument(help="Some sources; all without a name.")] = None,
) -> None:
    """Read sources until Ctrl-C, as `postbus up` does: those that no other process reads.

    Example: postbus source run shop
    """
    from postbus.sources.runner import SourceRunner

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s  %(message)s", datefmt="%H:%M:%S")
    with postgres_url(for_what="source run") as url:
        runner = SourceRunner(url, only=None if not names else set(names))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: runner.stop())
        output.say("reading sources; stop it with Ctrl-C")
        runner.run()
    output.say("stopped")


# It speaks to Postgres itself.
app.registered_commands.append(
    typer.models.CommandInfo(name="run", cls=Command, callback=with_options(run, (*TARGET, *OUTPUT)))
)
