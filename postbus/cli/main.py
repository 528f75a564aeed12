"""The `postbus` command. Each command is imported when it is called, so that `postbus --help` is fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer

import postbus
from postbus.cli.global_options import (
    ALIASES,
    ALL,
    OUTPUT,
    TARGET,
    Command,
    Commands,
    GlobalOptions,
    Group,
    use_from_now_on,
    with_options,
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A command or a group of commands: the `app` of a module, or one of its functions with its shared options."""

    module: str
    function: str | None = None
    shared: tuple[str, ...] = ALL
    help: str = ""


ENTRIES: Final[dict[str, _Entry]] = {
    "up": _Entry("up", "up", TARGET, help="Run the server, with the embedded Postgres unless a URL is given."),
    "stream": _Entry("streams", help="Streams: add, list, show, change, remove, read, purge."),
    "message": _Entry("messages", help="Messages: send, delete."),
    "consumer": _Entry("consumers", help="Consumers: add, list, show, change, receive, seek."),
    "receive": _Entry("deliveries", "receive", help="Receive messages; the same as: postbus consumer receive."),
    "queue": _Entry("queues", help="Queues: add, list, show, remove, send, receive, ack."),
    "channel": _Entry("channels", help="Channels: limits for each tenant, and why messages wait."),
    "push": _Entry("push", help="Endpoints of push consumers: list them; send to them."),
    "source": _Entry("sources", help="Sources: what feeds streams from outside."),
    "group": _Entry("groups", help="Groups, read by position: add, list, show, remove, claim, fetch, commit."),
    "dead": _Entry("dead", help="Dead letters: list, redrive, discard."),
    "task": _Entry("tasks", help="Redrives, discards and moves in the background: list, move, cancel."),
    "schedule": _Entry("schedule", help="Recurring schedules; messages that are scheduled once."),
    "apply": _Entry("apply", "apply", (*TARGET, *OUTPUT), help="Make streams, queues and consumers what a file says."),
    "export": _Entry("apply", "export", (*TARGET, *OUTPUT), help="Write the file that describes what there is."),
    "pipeline": _Entry("pipelines", help="Pipelines on Spark: run, list."),
    "context": _Entry("context", help="Contexts: which bus commands use."),
    "sqs": _Entry("sqs", help="Queues for boto3, Celery and other clients of SQS: expose, list, hide."),
    "token": _Entry("tokens", help="Tokens for the HTTP server."),
    "observe": _Entry("observe.command", "observe", TARGET, help="Watch the bus live, like htop."),
    "doctor": _Entry(
        "doctor.command", "doctor", (*TARGET, *OUTPUT), help="Look for problems, and say what to do about them."
    ),
    "migrate": _Entry("migrate", "migrate", (*TARGET, *OUTPUT), help="Install Postbus in a database, or upgrade it."),
}


def build(only: Collection[str] | None = None) -> typer.Typer:
    """The command with all its parts, or with some of them and the names of the others."""
    app = typer.Typer(
        cls=Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog="Try: postbus up; then in another terminal: postbus stream add orders",
    )
    app.callback()(options)
    for name, entry in ENTRIES.items():
        _add(app, name, entry, whole=only is None or name in only)
    return app


def _add(app: typer.Typer, name: str, entry: _Entry, *, whole: bool) -> None:
    if not whole:
        app.command(name, help=entry.help)(_nothing)
        return
    module = import_module(f"postbus.cli.{entry.module}")
    if entry.function is None:
        group: Commands = module.app
        app.add_typer(group, name=name, help=entry.help)
    else:
        function = with_options(getattr(module, entry.function), entry.shared)
        app.command(name, cls=Command, short_help=entry.help)(function)


def _nothing() -> None:
    """Stands for a command that was not called."""


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"postbus {postbus.__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    context: Annotated[str | None, typer.Option("--context", help="The stored context to use.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="postgresql://… or http://….")] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Use the embedded Postgres in this directory.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object per line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    as_curl: Annotated[bool, typer.Option("--as-curl", help="Print the HTTP request instead.")] = False,
) -> None:
    """Postbus is a message bus inside your Postgres.

    These options may be given here or after the command's name.
    """
    use_from_now_on(
        GlobalOptions(context=context, url=url, data_dir=data_dir, as_json=as_json, quiet=quiet, as_curl=as_curl)
    )


def called(arguments: Sequence[str]) -> set[str]:
    """Which commands the arguments may call."""
    return {name for argument in arguments for name in (argument, *ALIASES.get(argument, ())) if name in ENTRIES}


def run() -> None:
    """Run the command. An error of Postbus is printed in two lines: what happened, and what to do."""
    completes = "_POSTBUS_COMPLETE" in os.environ
    try:
        build(None if completes else called(sys.argv[1:]))()
    except postbus.Error as error:
        typer.echo(f"error: {error.message}", err=True)
        if (hint := error.hint_for("command line")) is not None:
            typer.echo(f"hint:  {hint}", err=True)
        sys.exit(error.exit_status)
