"""The `postbus` command. Each of its commands is imported when it is called, so that `postbus --help` is there at once."""

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
    Commands,
    GlobalOptions,
    Group,
    use_from_now_on,
    with_options,
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A command or a group of commands, and where it is: `app` of a module, or a function of it with its shared options."""

    module: str
    function: str | None = None
    shared: tuple[str, ...] = ALL
    help: str = ""


ENTRIES: Final[dict[str, _Entry]] = {
    "up": _Entry("up", "up", TARGET, help="Run the server, and Postgres if need be."),
    "stream": _Entry("streams", help="Streams: add, list, look at, change, remove, read, purge."),
    "message": _Entry("messages", help="Messages: send, delete."),
    "consumer": _Entry("consumers", help="Consumers: add, list, look at, change, receive, move."),
    "receive": _Entry("deliveries", "receive", help="Receive messages; the same as: postbus consumer receive."),
    "queue": _Entry("queues", help="Queues: add, list, look at, remove, send, receive, settle."),
    "group": _Entry("groups", help="Groups, read by position: add, list, look at, remove, claim, fetch, commit."),
    "dead": _Entry("dead", help="Dead letters: list, redrive, discard."),
    "schedule": _Entry("schedule", help="Scheduled messages: list, cancel, move."),
    "pipeline": _Entry("pipelines", help="Pipelines on Spark: run, list."),
    "context": _Entry("context", help="Contexts: which bus commands work on."),
    "token": _Entry("tokens", help="Tokens for the HTTP server."),
    "observe": _Entry("observe.command", "observe", TARGET, help="Watch the bus on the screen, like htop."),
    "doctor": _Entry("doctor.command", "doctor", (*TARGET, *OUTPUT), help="Look for what is wrong, and what to do."),
    "migrate": _Entry("migrate", "migrate", (*TARGET, *OUTPUT), help="Install Postbus, or bring it up to date."),
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
        app.command(name, short_help=entry.help)(with_options(getattr(module, entry.function), entry.shared))


def _nothing() -> None:
    """Stands for a command that was not called."""


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"postbus {postbus.__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Say the version and end.")
    ] = False,
    context: Annotated[str | None, typer.Option("--context", help="The stored context to use.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="postgresql://… or http://….")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="The embedded Postgres that lives here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object per line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    as_curl: Annotated[bool, typer.Option("--as-curl", help="Print the HTTP request instead.")] = False,
) -> None:
    """Postbus turns the Postgres you already run into a message bus.

    These options may stand here or behind the command's name.
    """
    use_from_now_on(
        GlobalOptions(context=context, url=url, data_dir=data_dir, as_json=as_json, quiet=quiet, as_curl=as_curl)
    )


def called(arguments: Sequence[str]) -> set[str]:
    """Which parts of the command the arguments may call."""
    return {name for argument in arguments for name in (argument, *ALIASES.get(argument, ())) if name in ENTRIES}


def run() -> None:
    """Run the command; an error of Postbus is two lines, what happened and what to do."""
    completes = "_POSTBUS_COMPLETE" in os.environ
    try:
        build(None if completes else called(sys.argv[1:]))()
    except postbus.Error as error:
        typer.echo(f"error: {error.message}", err=True)
        if error.hint is not None:
            typer.echo(f"hint:  {error.hint}", err=True)
        sys.exit(error.exit_status)
