"""Writes what the SQL repeats of the settings: the marked regions of plain .sql files.

A region begins with a line such as `-- <consumer settings: columns>` and ends with `-- </consumer settings>`. A backoff and
a filter have several columns each, which are written by hand beside the region.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from postbus.model.settings import (
    ConsumerChanges,
    ConsumerSettings,
    Setting,
    StreamChanges,
    StreamSettings,
    choices_of,
    settings_of,
)
from tools.settings_reference import amount

_KINDS: Final[dict[str, tuple[Any, Any]]] = {
    "stream": (StreamSettings, StreamChanges),
    "consumer": (ConsumerSettings, ConsumerChanges),
}
_REGION: Final = re.compile(
    r"^(?P<indent> *)-- <(?P<noun>\w+) settings: (?P<part>\w+)(?: of (?P<only>\w+))?>\n"
    r".*?"
    r"^ *-- </(?P=noun) settings>\n(?=(?P<next>[^\n]*))",
    re.M | re.S,
)
# The layout register has the number of partitions, so it is no column.
_NO_COLUMN: Final = ("partitions",)
_INTEGER_MOST: Final = 2**31 - 1
_WIDTH: Final = 132


def with_regions(text: str) -> str:
    """An SQL file with its regions written anew."""
    return _REGION.sub(_region, text)


def files(folder: Path) -> Iterable[Path]:
    """The SQL files with regions."""
    return (path for name in ("functions", "tables") for path in sorted((folder / name).rglob("*.sql")) if _has(path))


def _has(path: Path) -> bool:
    return _REGION.search(path.read_text()) is not None


def _region(match: re.Match[str]) -> str:
    noun, part, only, indent = match["noun"], match["part"], match["only"], match["indent"]
    found = _settings(noun)
    if only:
        found = {only: found[only]}
    elif part not in _DECLARING:
        found = {name: setting for name, setting in found.items() if name not in _NO_COLUMN}
    if part in ("optional", "changes", "unsettable"):
        found = {name: setting for name, setting in found.items() if name in settings_of(_KINDS[noun][1])}
    body = _PARTS[part](noun, found)
    # The last item of a list has no comma.
    if re.match(r" *(\)|from |where )", match["next"]):
        body = body.removesuffix(",\n")
        body = body if body.endswith("\n") else f"{body}\n"
    opening = f"-- <{noun} settings: {part}{f' of {only}' if only else ''}>\n"
    return textwrap.indent(f"{opening}{body}-- </{noun} settings>\n", indent)


def _settings(noun: str) -> dict[str, Setting]:
    """The settings with one column each, in the order of SQL: first what cannot be altered, so that a new one comes last."""
    all_of, alterable = (settings_of(kind) for kind in _KINDS[noun])
    found = [*((name, each) for name, each in all_of.items() if name not in alterable), *alterable.items()]
    return {name: each for name, each in found if each.kind not in ("backoff", "filter")}


def _column(name: str, setting: Setting) -> str:
    return setting.sql_name or name


def _type(setting: Setting) -> str:
    if setting.kind in ("number", "bytes"):
        return "bigint" if (setting.most or 0) > _INTEGER_MOST else "integer"
    return {"duration": "interval", "flag": "boolean", "choice": "text", "name": "text"}[setting.kind]


def _literal(setting: Setting, value: Any) -> str:
    if value is None:
        return "null"
    if setting.kind == "duration":
        return f"interval '{_duration(setting, value)}'"
    if setting.kind == "choice":
        return f"'{value}'"
    return str(value).lower()


def _default(setting: Setting) -> str:
    value = _literal(setting, setting.default)
    return f"{value}::text" if setting.kind == "choice" else value


def _duration(setting: Setting, value: float) -> str:
    return amount(setting, value).replace(",", "")


def _lines(line: Callable[[str, Setting], str]) -> Callable[[str, Mapping[str, Setting]], str]:
    """A part with a line for each setting, by the column's name."""
    return lambda _, found: "".join(f"{line(_column(name, setting), setting)}\n" for name, setting in found.items())


def _wrapped(word: Callable[[str], str]) -> Callable[[str, Mapping[str, Setting]], str]:
    """A part that is a list of words."""

    def part(_: str, found: Mapping[str, Setting]) -> str:
        text = " ".join(f"{word(_column(name, setting))}," for name, setting in found.items())
        return textwrap.fill(text, _WIDTH) + "\n"

    return part


def _unsettable(noun: str, found: Mapping[str, Setting]) -> str:
    return _wrapped("'{}'".format)(noun, {name: setting for name, setting in found.items() if setting.can_unset})


def _changes(noun: str, found: Mapping[str, Setting]) -> str:
    """The assignments of an update: what is given, else what is there."""
    lines = []
    for name, setting in found.items():
        column = _column(name, setting)
        value = f"coalesce(alter_{noun}.{column}, {noun[0]}.{column})"
        if setting.can_unset:
            value = f"case when '{column}' = any (unset) then null else {value} end"
        lines.append(f"{column} = {value},\n")
    return "".join(lines)


def _checks(noun: str, found: Mapping[str, Setting]) -> str:
    """The branches of a case that names the first problem."""
    lines: list[str] = []
    for name, setting in found.items():
        column = _column(name, setting)
        value = column if name in _NO_COLUMN else f"settings.{column}"
        if setting.default is not None:
            lines.append(f"when {value} is null then '{column} cannot be null'")
        if setting.kind == "choice":
            options = choices_of(_KINDS[noun][0], name)
            lines.append(f"when {value} not in ({', '.join(map(repr, options))})")
            lines.append(f"    then format('{column} = %L is not one of {', '.join(options)}', {value})")
        elif setting.kind not in ("flag", "name"):
            lines += _range(column, value, setting)
    return "".join(f"{line}\n" for line in lines)


def _range(column: str, value: str, setting: Setting) -> list[str]:
    bounds = (setting.least or 0, setting.most or 0)
    least, most = (_literal(setting, each) for each in bounds)
    shown = [_shown(setting, each) for each in bounds]
    if bounds[1] > 2**62:
        return [f"when {value} < {least}", f"    then format('{column} = %s is not at least {shown[0]}', {value})"]
    return [
        f"when {value} not between {least} and {most}",
        f"    then format('{column} = %s is not between {shown[0]} and {shown[1]}', {value})",
    ]


def _shown(setting: Setting, value: float) -> str:
    if setting.kind == "duration":
        return _duration(setting, value)
    return f"{value} ({amount(setting, value)})" if setting.kind == "bytes" and value >= 2**10 else str(value)


def _help(noun: str, found: Mapping[str, Setting]) -> str:
    """A header's list of settings."""
    width = max(len(_column(name, setting)) for name, setting in found.items()) + 2
    return "".join(
        textwrap.fill(
            setting.help.replace("`", ""),
            _WIDTH - 4,
            initial_indent=_column(name, setting).ljust(width),
            subsequent_indent=" " * width,
        )
        + "\n"
        for name, setting in found.items()
    )


# These name all settings; the other parts those that are columns.
_DECLARING: Final = ("parameters", "defaults", "optional", "attributes", "help")
_PARTS: Final[Mapping[str, Callable[[str, Mapping[str, Setting]], str]]] = {
    "parameters": _lines(
        lambda column, setting: f"{column} {_type(setting)} default {_literal(setting, setting.default)},"
    ),
    "optional": _lines(lambda column, setting: f"{column} {_type(setting)} default null,"),
    "attributes": _lines(lambda column, setting: f"{column} {_type(setting)},"),
    "assignments": _lines(lambda column, _: f"settings.{column} := {column};"),
    "defaults": _lines(lambda column, setting: f"'{column}', {_default(setting)},"),
    "answers": _lines(lambda column, _: f"info.{column} := settings.{column};"),
    "names": _wrapped(str),
    "values": _wrapped("settings.{}".format),
    "columns": _wrapped("c.{}".format),
    "unsettable": _unsettable,
    "changes": _changes,
    "checks": _checks,
    "help": _help,
}
