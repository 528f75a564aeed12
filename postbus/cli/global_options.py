"""Options that all commands share: which bus to use, and how to print results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from postbus.cli.elsewhere import place_of
from postbus.cli.option_aliases import translated
from postbus.model.errors import InvalidInput

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The values of a command's shared options.

    Attributes:
        context: The name of a stored context.
        url: Postgres or a server.
        data_dir: Where the embedded Postgres lives.
        as_json: Print JSON, one object per line.
        quiet: Print results and errors only.
        as_curl: Print the request instead of sending it.
    """

    context: str | None = None
    url: str | None = None
    data_dir: Path | None = None
    as_json: bool = False
    quiet: bool = False
    as_curl: bool = False

    def inside(self, outer: GlobalOptions) -> GlobalOptions:
        """These options, or those given before the command's name where one is missing here."""
        own_target = self.context or self.url or self.data_dir
        target = self if own_target else outer
        return GlobalOptions(
            context=target.context,
            url=target.url,
            data_dir=target.data_dir,
            as_json=self.as_json or outer.as_json,
            quiet=self.quiet or outer.quiet,
            as_curl=self.as_curl or outer.as_curl,
        )


_current: ContextVar[GlobalOptions] = ContextVar("shared options", default=GlobalOptions())  # noqa: B039 - it is frozen


def current() -> GlobalOptions:
    """The shared options of the command that runs."""
    return _current.get()


def complete_context(incomplete: str) -> list[str]:
    import os

    from postbus.cli import contexts
    from postbus.model.errors import Error

    try:
        names = contexts.Contexts(contexts.path(os.environ)).by_name
    except Error:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


_OPTIONS: Final[dict[str, Any]] = {
    "context": Annotated[
        str | None,
        typer.Option("--context", autocompletion=complete_context, help="The stored context to use (POSTBUS_CONTEXT)."),
    ],
    "url": Annotated[str | None, typer.Option("--url", help="postgresql://… or http://… (POSTBUS_URL).")],
    "data_dir": Annotated[
        Path | None, typer.Option("--data-dir", help="Use the embedded Postgres in this directory (POSTBUS_DATA_DIR).")
    ],
    "as_json": Annotated[bool, typer.Option("--json", help="Print JSON: one object per line.")],
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")],
    "as_curl": Annotated[bool, typer.Option("--as-curl", help="Print the HTTP request as a curl command instead.")],
}
TARGET: Final = ("context", "url", "data_dir")
OUTPUT: Final = ("as_json", "quiet")
ALL: Final = (*TARGET, *OUTPUT, "as_curl")


class Commands(typer.Typer):
    """A group of commands, each of which has the shared options."""

    def __init__(self, help: str, *, shared: tuple[str, ...] = ALL) -> None:
        super().__init__(help=help, no_args_is_help=True, cls=Group, rich_markup_mode=None)
        self._shared = shared

    def command(self, name: str | None = None, **more: Any) -> Callable[[_Function], _Function]:
        register = super().command(name, cls=Command, **more)

        def add(function: _Function) -> _Function:
            register(with_options(function, self._shared))
            return function

        return add


class Command(typer.core.TyperCommand):
    """A command that also takes options by the names that other tools have for them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        return super().parse_args(ctx, list(translated(args, known)))


class Group(typer.core.TyperGroup):
    """A group whose commands have aliases, for users of other tools."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        for other in () if found is not None else ALIASES.get(cmd_name, ()):
            found = found or super().get_command(ctx, other)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        group = self.name or ""
        if self.get_command(ctx, args[0]) is None and (place := place_of(group, args[0])) is not None:
            raise InvalidInput(f'{" ".join(("postbus", group)).strip()} has no command "{args[0]}"', f"use: {place}")
        return super().resolve_command(ctx, args)


# Short names, and words of other tools.
ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "s": ("stream",),
    "str": ("stream",),
    "streams": ("stream",),
    "c": ("consumer",),
    "con": ("consumer",),
    "consumers": ("consumer",),
    "m": ("message",),
    "msg": ("message",),
    "messages": ("message",),
    "q": ("queue",),
    "ctx": ("context",),
    "o": ("observe",),
    "obs": ("observe",),
    "add": ("create",),
    "create": ("add",),
    "new": ("add", "create"),
    "list": ("ls",),
    "show": ("info",),
    "view": ("read",),
    "update": ("edit",),
    "alter": ("edit",),
    "delete": ("rm",),
    "remove": ("rm",),
    "select": ("use",),
    "publish": ("send",),
}


def with_options(function: Callable[..., Any], names: tuple[str, ...] = ALL) -> Callable[..., Any]:
    """The function as a command that also takes these shared options."""
    own = inspect.signature(function, eval_str=True)
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=_OPTIONS[name], default=getattr(_DEFAULTS, name)
        )
        for name in names
    ]

    @wraps(function)
    def run(**values: Any) -> Any:
        given = GlobalOptions(**{name: values.pop(name) for name in names})
        with using(given.inside(current())):
            return function(**values)

    signature = own.replace(parameters=[*own.parameters.values(), *added])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return run


_DEFAULTS: Final = GlobalOptions()
assert set(_OPTIONS) == {field.name for field in fields(GlobalOptions)}  # noqa: S101


@contextmanager
def using(shared: GlobalOptions) -> Iterator[None]:
    """Run with these options."""
    token = _current.set(shared)
    try:
        yield
    finally:
        _current.reset(token)


def use_from_now_on(shared: GlobalOptions) -> None:
    """Set the options that were given before the command's name."""
    _current.set(shared)
