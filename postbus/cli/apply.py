"""`postbus apply` and `postbus export`: the bus as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from postbus.cli import output
from postbus.cli.options import Yes, confirm, open_bus
from postbus.model.change import Change
from postbus.model.errors import InvalidInput

_WORDS: Final = {"create": "create", "change": "change", "same": "same", "unlisted": "not in file", "remove": "remove"}
_DONE: Final = {
    "create": "created",
    "change": "changed",
    "same": "the same",
    "unlisted": "not in the file",
    "remove": "removed",
}


def apply(
    file: Annotated[Path, typer.Argument(help="A TOML file; - for stdin.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove streams and consumers that the file does not have.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make streams, queues, consumers and groups what a file says, and show what that changes.

    Settings that the file does not give get their defaults. Nothing is removed without --prune.

    Example: postbus apply bus.toml --dry-run
    """
    source = _source(file)
    with open_bus() as bus:
        if prune and not dry_run:
            removed = [each for each in bus.apply(source, dry_run=True, prune=True) if each.action == "remove"]
            if removed:
                confirm(f"Remove {', '.join(map(_to_remove, removed))}?", yes)
        changes = bus.apply(source, dry_run=dry_run, prune=prune)
    if output.as_json():
        for change in changes:
            output.emit_json(_object(change))
        return
    for line in _lines(changes):
        typer.echo(line)
    output.say(_summary(changes, dry_run=dry_run))


def export(
    out: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; stdout without it.")] = None,
) -> None:
    """Write the file for `postbus apply` that describes what there is. Settings at their defaults are left out.

    Example: postbus export --output bus.toml
    """
    from postbus.model import toml

    with open_bus() as bus:
        tables = bus.export()
    if output.as_json():
        output.emit_json(tables)
        return
    if not tables:
        output.say("there are no streams yet")
    text = toml.dumps(tables) if tables else ""
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror}") from error
    output.say(f"wrote {out}")


def _source(file: Path) -> Path | Mapping[str, Any]:
    if str(file) != "-":
        return file
    import tomllib

    try:
        return tomllib.loads(sys.stdin.read())
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"stdin is not valid TOML: {error}") from error


def _to_remove(change: Change) -> str:
    rest = " with all its messages" if change.kind in ("stream", "queue") else ""
    return f"{change.kind} {change.path}{rest}"


def _object(change: Change) -> dict[str, Any]:
    settings = {name: {"from": before, "to": after} for name, (before, after) in change.settings.items()}
    return {
        "action": change.action,
        "kind": change.kind,
        "stream": change.stream,
        "name": change.name,
        "settings": settings,
    }


def _lines(changes: list[Change]) -> Iterator[str]:
    words = max((len(_WORDS[each.action]) for each in changes), default=0)
    names = max((len(each.kind) + 1 + len(each.path) for each in changes), default=0)
    for each in changes:
        yield f"{_WORDS[each.action].ljust(words)}  {f'{each.kind} {each.path}'.ljust(names)}  {_settings(each)}".rstrip()


def _settings(change: Change) -> str:
    if change.action == "create":
        return ", ".join(f"{name} {output.cell(after)}" for name, (_, after) in change.settings.items())
    return ", ".join(
        f"{name} {output.cell(before)} → {output.cell(after)}" for name, (before, after) in change.settings.items()
    )


def _summary(changes: list[Change], *, dry_run: bool) -> str:
    counts = {action: sum(each.action == action for each in changes) for action in _WORDS}
    if not changes:
        return "the file declares nothing, and there is nothing"
    words = {**_DONE, "create": "to create", "change": "to change", "remove": "to remove"} if dry_run else _DONE
    said = ", ".join(f"{count} {words[action]}" for action, count in counts.items() if count)
    return f"{said}; nothing was changed" if dry_run else said
