"""The page docs/reference/cli.md, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from postbus.cli.main import app

HEAD = """# The `postbus` command

Made from the command itself by `make generate`; `postbus COMMAND --help` says the same.

Data goes to stdout, everything else to stderr. `--url` (or `POSTBUS_URL`) names the Postgres to use; without it the embedded one
is started. Durations are written as `30s`, `10m`, `2h`, `7d`.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | something else went wrong |
| 2 | what was asked for is not allowed, or not written as it should be |
| 3 | not found |
| 4 | it exists, or is not what was expected |
| 5 | Postgres cannot be reached, or is busy; try again |
| 6 | the database needs `postbus migrate` |
| 7 | the embedded Postgres cannot be used |
"""


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    return HEAD + "".join(_section(path, command) for path, command in commands(root, "postbus"))


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its name, in alphabetical order; not those that only hold others."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name in sorted(inner):
        yield from commands(inner[name], f"{path} {name}")


def _section(path: str, command: Any) -> str:
    description, _, example = (command.help or "").strip().partition("Example:")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    usage = " ".join([path, *(_argument(each) for each in arguments)])
    lines = [f"\n## `{path}`\n", f"{' '.join(description.split())}\n", f"```\n{usage} [OPTIONS]\n```\n"]
    if example:
        lines.append(f"Example: `{example.strip()}`\n")
    rows = [
        f"| `{_escaped(', '.join(each.opts + each.secondary_opts))}` | {_escaped(each.help or '')} |"
        for each in options
    ]
    if rows:
        lines.append("\n".join(["| option | meaning |", "|---|---|", *rows]) + "\n")
    return "\n".join(lines)


def _argument(argument: Any) -> str:
    name = f"{argument.name.upper()}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
