"""Every command and option that a page names exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from postbus.cli.main import build
from tests.docs.test_snippets import ROOT

PAGES = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md"))
    # Decisions tell of commands that once were.
    if path.parent.name != "decisions"
)
ROOT_COMMAND = typer.main.get_command(build())


def named(page: Path) -> Iterator[str]:
    """The commands in code of a page."""
    text = page.read_text()
    for block in re.findall(r"```\w*\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.match(r"\s*\$?\s*(postbus [^#|&;>]*)", line):
                yield found[1].strip()
    yield from re.findall(r"`(postbus [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def problem(command: str) -> str | None:
    """What is wrong with a command: an unknown name or option."""
    try:
        words = shlex.split(command.replace("…", "x"))[1:]
    except ValueError:
        return None
    current: Any = ROOT_COMMAND
    options: set[str] = set()
    for word in words:
        if word.startswith("-") and word != "-":
            options.add(word.partition("=")[0])
        elif hasattr(current, "commands") and not (options and current is ROOT_COMMAND):
            if "|" in word or not re.fullmatch(r"[a-z][a-z-]*", word):
                return None
            if (following := current.get_command(typer.Context(current), word)) is None:
                return f'there is no "{word}"'
            current = following
    known = {name for each in (*current.params, *ROOT_COMMAND.params) for name in (*each.opts, *each.secondary_opts)}
    unknown = sorted(each for each in options - known - {"--help"} if each.startswith("--"))
    return f"there is no {', '.join(unknown)}" if unknown and not hasattr(current, "commands") else None


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_of_a_page_exist(page: Path) -> None:
    assert {command: wrong for command in named(ROOT / page) if (wrong := problem(command))} == {}


def test_a_wrong_command_is_found() -> None:
    assert problem("postbus stream lst") == 'there is no "lst"'
    assert problem("postbus stream add orders --partitons 4") == "there is no --partitons"
    assert problem("postbus stream add orders --partitions 4") is None
