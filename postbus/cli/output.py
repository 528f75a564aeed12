"""How results are printed: aligned columns for people, one JSON object per line for programs.

Data goes to stdout, everything else to stderr. With --quiet, only errors go to stderr.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import typer

from postbus.cli.global_options import current
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.model.wording import counted as counted

# What names something is printed so that it can be pasted into a command.
_NAMES: Final = ("id", "seq", "pid")
_UNITS: Final = ((3600, "h"), (60, "m"))


def emit(
    values: Iterable[Any],
    columns: Sequence[str],
    *,
    empty: str,
    shown: Callable[[Any], Mapping[str, Any]] | None = None,
    quoted: bool = False,
) -> None:
    """Print dataclasses or mappings: these attributes as columns, or all of them as JSON.

    Args:
        values: What to print.
        columns: The names of the attributes.
        empty: What to say if there are no values.
        shown: What the columns show of a value instead of its attributes.
        quoted: Data that is a text is a JSON string, and is shown as one.
    """
    if current().as_json:
        for value in values:
            emit_json(value)
        return
    found = [_attributes(value) if shown is None else shown(value) for value in values]
    rows = [
        [_quoted(each[name]) if quoted and name == "data" else cell(each[name], name) for name in columns]
        for each in found
    ]
    if not rows:
        say(empty)
        return
    header = [column.upper().replace("_", " ") for column in columns]
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(columns))]
    for row in [header, *rows]:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def emit_one(value: Any, *, leave_out: Sequence[str] = ()) -> None:
    """Print one dataclass or mapping: a line for each attribute, or JSON."""
    if current().as_json:
        emit_json(value)
        return
    fields = {name: each for name, each in _attributes(value).items() if name not in leave_out}
    width = max(map(len, fields))
    for name, each in fields.items():
        typer.echo(f"{name.replace('_', ' ').ljust(width)}  {cell(each, name)}")


def blank() -> None:
    """Print an empty line between parts for people."""
    typer.echo()


def emit_json(value: Any) -> None:
    typer.echo(json.dumps(_plain(value), default=_plain, ensure_ascii=False))


def with_priority(columns: tuple[str, ...], messages: Sequence[Any]) -> tuple[str, ...]:
    """Columns that show priorities, if there are others than the default."""
    return (*columns, "priority") if any(each.priority != DEFAULT_PRIORITY for each in messages) else columns


def emit_line(message: Any, *, quoted: bool = False) -> None:
    """Print a message in a line."""
    if current().as_json:
        emit_json(message)
    else:
        data = _quoted(message.data) if quoted else cell(message.data)
        typer.echo(f"{message.seq}  {cell(message.key)}  {data}")


def emit_number(number: int, text: str, *, name: str) -> None:
    """Print a number: with its meaning to people, alone to a program that reads stdout, or as JSON."""
    if current().as_json:
        emit_json({name: number})
    elif is_for_people() and not current().quiet:
        typer.echo(text)
    else:
        typer.echo(number)
        say(text)


def emit_share(verb: str, count: int, asked: int, noun: str, *, others: str, name: str) -> None:
    """Print how many of the things that were named counted. Exits with 1 if not all of them did."""
    rest = "" if count >= asked else f" of {asked:,}; {others}"
    emit_number(count, f"{verb} {counted(count, noun)}{rest}", name=name)
    if count < asked:
        raise typer.Exit(1)


def is_for_people() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def done(text: str, **facts: Any) -> None:
    """Report the end of a command that has no other result."""
    if current().as_json:
        emit_json(facts)
        return
    say(text)


def made(what: str, exist_ok: bool) -> str:
    """How to report a create: with exist_ok it may have existed before."""
    return f"{what} exists" if exist_ok else f"created {what}"


def say(text: str) -> None:
    """Print a note for the user to stderr."""
    if not current().quiet:
        typer.echo(text, err=True)


def with_progress(counts: Iterable[int], noun: str) -> Iterator[int]:
    """The counts of a loop with many steps; each is reported but the last, which the result says."""
    before: int | None = None
    for count in counts:
        if before is not None and count != before:
            say(f"{counted(before, noun)} so far")
        before = count
        yield count


def cell(value: Any, column: str = "") -> str:
    """A value in a column."""
    if value is None or value == ():
        return "-"
    if isinstance(value, datetime):
        return value.astimezone().isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value) if column in _NAMES else f"{value:,}"
    return json.dumps(value, default=_plain, ensure_ascii=False)


def duration(value: timedelta) -> str:
    """A duration in its largest units: "1 day", "1h30m", "30s"."""
    days, seconds = divmod(value.total_seconds(), 86400)
    parts = ""
    for length, unit in _UNITS:
        whole, seconds = divmod(seconds, length)
        parts += f"{whole:g}{unit}" if whole else ""
    parts += f"{seconds:g}s" if seconds or not (parts or days) else ""
    return f"{counted(int(days), 'day')} {parts}".strip() if days else parts


def _quoted(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False) if isinstance(data, str) else cell(data)


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if "priority" not in found and hasattr(value, "priority"):
        # Worked out from the partition.
        found["priority"] = value.priority
    return found


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) or isinstance(value, Mapping):
        return _attributes(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return str(value)


def as_json() -> bool:
    """Whether results are printed as JSON."""
    return current().as_json
