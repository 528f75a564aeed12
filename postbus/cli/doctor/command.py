"""`postbus doctor`: the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer

from postbus.cli import output
from postbus.cli.target import Target, find_target, postgres_url
from postbus.doctor.finding import Finding
from postbus.model.errors import Error

_MARKS: Final = {"ok": "✓", "note": "·", "warning": "!", "problem": "✗"}
_COLOURS: Final = {"ok": "green", "note": None, "warning": "yellow", "problem": "red"}


def doctor() -> None:
    """Look for problems and risks, and say what to do about them. Exits with status 1 if there is a problem.

    It looks at Postgres (version, settings, locks, who holds readers up, replication slots, bloat, retention), at the
    server if that is the target, at Java and Spark, and at clocks.

    Example: postbus doctor --context prod
    """
    found = []
    for finding in _findings():
        found.append(finding)
        _print(finding)
    counts = {level: sum(each.level == level for each in found) for level in _MARKS}
    output.say(f"{_counted(counts['problem'], 'problem')}, {_counted(counts['warning'], 'warning')}")
    if counts["problem"]:
        raise typer.Exit(1)


def _findings() -> Iterator[Finding]:
    from postbus.cli.doctor import machine

    target = find_target()
    yield Finding("target", "ok", f"{_shown(target)}, chosen by {target.chosen_by}")
    if target.is_http:
        from postbus.cli.doctor import server

        yield from machine.check(None)
        yield from server.check(target)
        return
    yield from machine.check(None if target.url is not None else _data_dir(target))
    yield from _postgres()


def _postgres() -> Iterator[Finding]:
    from postbus.doctor import diagnosis, postgres

    try:
        with postgres_url(for_what="doctor") as url:
            facts = diagnosis.examine(url)
    except Error as error:
        hint = error.hint_for("command line") or "check that it runs and that the URL is right: postbus context info"
        yield Finding("postgres", "problem", error.message, hint)
        return
    yield from postgres.check(facts)


def _data_dir(target: Target) -> Path:
    from postbus.db.embedded import EmbeddedServer

    return EmbeddedServer(target.data_dir).directory.path


def _shown(target: Target) -> str:
    from postbus.db.url import without_password

    return "the embedded Postgres" if target.url is None else without_password(target.url)


def _print(finding: Finding) -> None:
    if output.as_json():
        output.emit_json(finding)
        return
    typer.echo(f"{typer.style(_MARKS[finding.level], fg=_COLOURS[finding.level], bold=True)} {finding.text}")
    if finding.advice is not None and finding.level != "ok":
        typer.echo(f"    {finding.advice}")


def _counted(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"
