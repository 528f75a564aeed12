"""The page docs/reference/cli.md, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from postbus.cli.global_options import ALL
from postbus.cli.main import build

HEAD = """# The `postbus` command

Made from the command itself by `make generate`; `postbus COMMAND --help` says the same.

Data goes to stdout, everything else to stderr (nothing but errors with `--quiet`). `--json` prints one object per line.
Durations are written as `30s`, `10m`, `2h`, `7d`, sizes as `64k`, `10M`, `1.5G`. `--context`, `--url`, `--data-dir`,
`--json`, `--quiet` and `--as-curl` may stand before the command's name too.

## Which bus

The first of these that is given decides:

1. `--url`, `--context` or `--data-dir` (one of them)
2. `POSTBUS_URL` (with `POSTBUS_TOKEN` if it is a server's)
3. `POSTBUS_CONTEXT`
4. `POSTBUS_DATA_DIR`: the embedded Postgres that lives there
5. the context that `postbus context use` has chosen
6. the embedded Postgres, in its usual place

`postbus context info` says which it is, and why. Contexts are kept in `~/.config/postbus/contexts.json` (`XDG_CONFIG_HOME`,
or `POSTBUS_CONTEXTS` for the file itself), which only its owner can read. A URL, token or password may be given as
`env:NAME` or `file:PATH`: then the file holds that, and the value is looked up when it is used.

## Other names

`s`, `str` for `stream`; `c`, `con` for `consumer`; `m`, `msg` for `message`; `q` for `queue`; `ctx` for `context`; `o`,
`obs` for `observe`; and in each of them `list`, `show`, `create`, `new`, `update`, `delete`, `remove`, `select`, `publish`
for what they mean. `postbus --install-completion` lets bash, zsh and fish complete commands, options, streams, consumers,
queues and contexts.

## Exit statuses

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | something else went wrong, or a question was answered with no |
| 2 | what was asked for is not allowed, or not written as it should be |
| 3 | not found |
| 4 | it exists, or is not what was expected, or may not be done by this role or token |
| 5 | Postgres or the server cannot be reached or is busy, or the stream is full; try again |
| 6 | the database needs `postbus migrate` |
| 7 | the embedded Postgres cannot be used |
| 130 | ended by Ctrl-C |
"""


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(build())
    head = (
        HEAD
        + "\n".join(["\n## Options of most commands\n", "| option | meaning |", "|---|---|", *_shared_rows(root)])
        + "\n"
    )
    return head + "".join(_section(path, command) for path, command in commands(root, "postbus"))


def _shared_rows(root: Any) -> list[str]:
    example = next(command for path, command in commands(root, "postbus") if path == "postbus stream ls")
    return [_row(option) for option in example.params if option.name in ALL]


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
    rows = [_row(each) for each in options if each.name not in ALL]
    if rows:
        lines.append("\n".join(["| option | meaning |", "|---|---|", *rows]) + "\n")
    shared = [f"`{max(each.opts, key=len)}`" for each in options if each.name in ALL]
    lines.append(f"{'And' if rows else 'Options:'} {', '.join(shared)}.\n")
    return "\n".join(lines)


def _row(option: Any) -> str:
    return f"| `{_escaped(', '.join(option.opts + option.secondary_opts))}` | {_escaped(option.help or '')} |"


def _argument(argument: Any) -> str:
    name = f"{argument.name.upper()}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
