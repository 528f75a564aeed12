"""Runs commands in this process, as a user types them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from postbus.cli.main import build, called


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed."""

    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands on one bus; None lets them find out which."""

    url: str | None

    def run(self, *arguments: str, input: str | None = None, status: int = 0) -> Said:
        """Raises what the command does; another status than the expected one fails."""
        target = [] if self.url is None else ["--url", self.url]
        result = CliRunner().invoke(build(called(arguments)), [*arguments, *target], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == status, result.output
        return Said(result.stdout, result.stderr)

    def __call__(self, *arguments: str, input: str | None = None) -> str:
        return self.run(*arguments, input=input).out

    def objects(self, *arguments: str, input: str | None = None) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json", input=input).splitlines()]
