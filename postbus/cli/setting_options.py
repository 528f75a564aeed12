"""The settings of streams and consumers as options: names, help and parsing follow from model/settings.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, Final, TypeVar

import typer

from postbus.cli.options import pairs, seconds, size
from postbus.model.amounts import written_duration, written_size
from postbus.model.consumer import Exponential, Filter
from postbus.model.settings import Setting, choices_of, settings_of

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Options that are not named as their setting is.
_NAMES: Final = {"data_type": "--type"}
_DAY: Final = 86_400
# A filter is given in parts.
_FILTER: Final[dict[str, Any]] = {
    "filter_key": Annotated[str | None, typer.Option("--filter", help="A key pattern, such as 'orders.>'.")],
    "filter_header": Annotated[
        list[str] | None, typer.Option(help="A header that a message must have, as NAME=VALUE; may be repeated.")
    ],
    "filter_header_not": Annotated[
        list[str] | None, typer.Option(help="A header that a message must not have, as NAME=VALUE; may be repeated.")
    ],
    "filter_data": Annotated[
        str | None, typer.Option(help="A JSON path that the data must match, such as '$.amount > 100'.")
    ],
}


def with_settings(
    kind: Any, *, only: Collection[str] = (), is_new: bool = False, defaults: Mapping[str, Any] | None = None
) -> Callable[[_Command], _Command]:
    """Give a command an option for each setting. Its parameter `settings` gets those that were given.

    Args:
        kind: A type of settings.
        only: The names of the settings, if not all.
        is_new: Whether the command creates something, so that its help shows the defaults.
        defaults: Defaults that differ from those of the settings.
    """
    chosen = {name: setting for name, setting in settings_of(kind).items() if not only or name in only}
    for name, default in (defaults or {}).items():
        chosen[name] = replace(chosen[name], default=default)

    def decorate(function: _Command) -> _Command:
        own = inspect.signature(function, eval_str=True)
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None)
            for name, annotation in _options(kind, chosen, is_new=is_new)
        ]
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own.parameters.values()
            for each in (added if parameter.name == "settings" else [parameter])
        ]

        @wraps(function)
        def run(**values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in added}
            return function(**values, settings=_parsed(chosen, given))

        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate


def backoff(text: str | None) -> Any:
    """Delays, or a backoff that grows."""
    if text is None or text == "exponential":
        return None if text is None else Exponential(first=1, cap=300, jitter=0.2)
    return [seconds(each.strip()) for each in text.split(",")]


def _options(kind: Any, chosen: dict[str, Setting], *, is_new: bool) -> Iterator[tuple[str, Any]]:
    for name, setting in chosen.items():
        if setting.kind == "filter":
            yield from _FILTER.items()
            continue
        flag = _NAMES.get(name, f"--{name.replace('_', '-')}")
        words = f"{flag}/--no-{flag[2:]}" if setting.kind == "flag" else flag
        value = {"flag": bool, "number": int}.get(setting.kind, str)
        help_text = _help(kind, name, setting, is_new=is_new)
        yield name, Annotated[value | None, typer.Option(words, help=help_text)]


def _help(kind: Any, name: str, setting: Setting, *, is_new: bool) -> str:
    if setting.kind == "backoff":
        return f"{setting.help} Example: 1s,10s,1m; or exponential."
    if setting.kind == "choice":
        choices = [
            f"{each} (default)" if is_new and each == setting.default else each for each in choices_of(kind, name)
        ]
        return f"{setting.help} One of: {', '.join(choices)}."
    if setting.kind in ("flag", "name"):
        return setting.help
    if is_new and setting.default is not None:
        return f"{setting.help} Default: {written(setting, setting.default)}."
    if setting.kind == "number":
        return setting.help
    return f"{setting.help} Example: {_example(setting)}."


def _example(setting: Setting) -> str:
    if setting.default is not None:
        return written(setting, setting.default)
    if setting.kind == "bytes":
        return "10G"
    return "30d" if (setting.most or 0) > 30 * _DAY else "10m"


def written(setting: Setting, value: Any) -> str:
    """A value as users write it."""
    if setting.kind == "number":
        return f"{value:,}"
    return written_duration(value) if setting.kind == "duration" else str(written_size(value))


def _parsed(chosen: dict[str, Setting], given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as the library takes them."""
    parse: dict[str, Callable[[Any], Any]] = {"duration": seconds, "bytes": size, "backoff": backoff}
    found = {
        name: _filter(given) if setting.kind == "filter" else parse.get(setting.kind, lambda value: value)(given[name])
        for name, setting in chosen.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _filter(given: dict[str, Any]) -> Filter | None:
    found = Filter(
        key=given["filter_key"],
        headers=pairs(given["filter_header"]),
        headers_not=pairs(given["filter_header_not"]),
        data=given["filter_data"],
    )
    return None if found == Filter() else found
