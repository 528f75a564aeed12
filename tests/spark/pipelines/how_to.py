"""Runs the commands and examples of a page of docs/how-to, as they are printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.cli.shell import Said, Shell
from tests.spark.conftest import ROOT


@dataclass(frozen=True)
class HowTo:
    """A page that was run.

    Attributes:
        text: The page.
        scope: The names that its Python has defined.
        said: Its commands with what each printed, in their order.
        answers: The rows of each of its statements in SQL.
    """

    text: str
    scope: dict[str, Any]
    said: list[tuple[str, Said]] = field(default_factory=list)
    answers: list[list[tuple[Any, ...]]] = field(default_factory=list)

    def said_by(self, start: str) -> list[Said]:
        """What the commands printed that begin so, without their `postbus`."""
        return [said for command, said in self.said if command.startswith(f"$ postbus {start}")]


def run_how_to(name: str, url: str, *, places: Mapping[str, object] | None = None, **scope: Any) -> HowTo:
    """Run a page on a bus.

    Args:
        name: The page's name.
        url: The bus.
        places: What is to stand in the place of paths and the like.
        **scope: What its Python can use.
    """
    page = HowTo((ROOT / "docs" / "how-to" / f"{name}.md").read_text(), scope)
    for language, block in re.findall(r"```(console|python|sql)\n(.*?)```", page.text, re.S):
        if language == "python":
            exec(_placed(block, places), page.scope)
        elif language == "sql":
            with psycopg.connect(url, autocommit=True) as connection:
                page.answers.append(connection.execute(_placed(block, places).encode()).fetchall())
        else:
            for line in block.strip().splitlines():
                _, *arguments = shlex.split(_placed(line.removeprefix("$ "), places))
                page.said.append((line, Shell(url).run(*arguments)))
    return page


def _placed(text: str, places: Mapping[str, object] | None) -> str:
    for name, place in (places or {}).items():
        text = text.replace(name, str(place))
    return text
