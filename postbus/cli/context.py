"""`postbus context`: which bus commands use."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from postbus.cli import contexts, output
from postbus.cli.contexts import Context
from postbus.cli.global_options import OUTPUT, Commands, complete_context
from postbus.cli.options import Yes, confirm
from postbus.cli.target import find_target, stored_contexts
from postbus.model.errors import Conflict, InvalidInput

app = Commands("Contexts: which bus commands use.", shared=OUTPUT)
Name = Annotated[str, typer.Argument(help="The context's name.", autocompletion=complete_context)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A context as it is listed."""

    name: str
    in_use: bool
    url: str
    token: str | None
    password: str | None


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    url: Annotated[str, typer.Option("--url", help="postgresql://… or http://…; or env:NAME or file:PATH.")],
    token: Annotated[
        str | None,
        typer.Option("--token", help="For a server: the token, env:NAME, file:PATH, or - to be prompted."),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option("--password", help="For Postgres: the password, env:NAME, file:PATH, or - to be prompted."),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing context of that name.")] = False,
) -> None:
    """Store the address of a bus in a file that only you can read. Secrets may stay in the environment or in other files.

    Example: postbus context create prod --url http://bus.example.com:7376 --token env:PROD_TOKEN --use
    """
    stored = stored_contexts()
    if name in stored.by_name and not force:
        raise Conflict(f'context "{name}" exists', "replace it with --force")
    context = Context(url=url, token=_secret("Token", token), password=_secret("Password", password))
    if not url.startswith(("env:", "file:")):
        contexts.checked_url(url)
    stored.put(name, context, use=use)
    text = (
        f"created context {name}; it is in use"
        if use
        else f"created context {name}; use it: postbus context use {name}"
    )
    output.done(text, created=name)
    if use:
        _say_if_another_is_meant()


def _say_if_another_is_meant() -> None:
    for name in ("POSTBUS_URL", "POSTBUS_CONTEXT", "POSTBUS_DATA_DIR"):
        if os.environ.get(name):
            output.say(f"note: {name} is set and takes precedence over the context")
            return


def _secret(what: str, given: str | None) -> str | None:
    if given != "-":
        return given
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    asked: str = typer.prompt(what, hide_input=True, err=True)
    return asked


@app.command("ls")
def ls() -> None:
    """List contexts.

    Example: postbus context ls
    """
    stored = stored_contexts()
    shown = [
        _Shown(name=name, in_use=name == stored.in_use, **context.shown())
        for name, context in sorted(stored.by_name.items())
    ]
    output.emit(
        shown,
        ("name", "in_use", "url", "token", "password"),
        empty="no contexts yet; create one: postbus context create NAME --url …",
    )


@app.command("info")
def info(
    name: Annotated[str | None, typer.Argument(help="The context's name.", autocompletion=complete_context)] = None,
) -> None:
    """Show a context or, without a name, which bus commands use now and why.

    Example: postbus context info
    """
    if name is not None:
        output.emit_one({"name": name, **stored_contexts().get(name).shown()})
        return
    found = find_target()
    shown = None if found.url is None else Context(url=found.url).shown()["url"]
    output.emit_one(
        {
            "url": shown or "the embedded Postgres",
            "token": None if found.token is None else "***",
            "chosen_by": found.chosen_by,
        }
    )


@app.command("use")
def use(
    name: Annotated[str | None, typer.Argument(help="The context's name.", autocompletion=complete_context)] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no context.")] = False,
) -> None:
    """Use this context from now on, unless an option or the environment names another bus.

    Example: postbus context use prod
    """
    if (name is None) != none:
        raise InvalidInput("no context was named", "give a name, or --none")
    stored_contexts().use(name)
    output.done("no context is in use" if name is None else f"context {name} is in use", in_use=name)
    _say_if_another_is_meant()


@app.command("rm")
def rm(name: Name, yes: Yes = False) -> None:
    """Remove a context.

    Example: postbus context rm prod --yes
    """
    stored = stored_contexts()
    stored.get(name)
    confirm(f"Forget context {name}?", yes)
    stored.remove(name)
    output.done(f"removed context {name}", removed=name)
