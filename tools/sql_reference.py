"""Writes docs/reference/sql.md: the public functions, from the headers of their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from postbus import sql

_HEAD: Final = """# SQL

Made from the headers of the functions by `make generate`; do not edit. psql shows the same: `\\df+ postbus.*`.

Everything that the library does is a function of schema `postbus`, which any language can call. Calls take part in your
transaction, which has to be READ COMMITTED. The last argument of most functions, `caller`, is not shown here: leave it out
([why it is there](../decisions/0019-rights-by-functions-that-know-their-caller.md)). Functions that name no right are for members
of the role that owns Postbus ([roles](../how-to/use-roles.md)).
"""
_TITLES: Final = {
    "message": "Publish and read",
    "delivery": "Receive and settle",
    "stream": "Streams",
    "consumer": "Consumers",
    "dead_letter": "Dead letters",
    "group": "Groups",
    "schedule": "Scheduled messages and schedules",
    "channel": "Channels",
    "push": "Push consumers",
    "source": "Postgres sources",
    "webhook": "Webhook sources",
    "sqs": "Clients of SQS",
    "task": "Tasks in the background",
    "horizon": "The horizon and locks",
    "redelivery": "Upkeep",
    "segment": "Upkeep",
    "upkeep": "Upkeep",
    "role": "Roles",
    "token": "Tokens",
    "state": "One message per key",
    "key": "Keys and priorities",
    "level": "Keys and priorities",
    "pipeline": "Pipelines",
    "ingest": "Pipelines",
    "backfill": "Pipelines",
}
_LEFT_OUT: Final = ("install", "release_0_1_0")
_FUNCTION: Final = re.compile(
    r"create or replace function postbus\.(\w+)\((.*?)\n?\)\nreturns (.*?)\nlanguage .*?/\*(.*?)\*/", re.S
)


class Described(NamedTuple):
    """A public function: its name, parameters, result, and the text of its header."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    text: str


def functions() -> dict[str, list[Described]]:
    """The public functions by the title under which the page has them."""
    found: dict[str, list[Described]] = {}
    folders = {path.parent for path in _folder().glob("*/*.sql")}
    order = list(_TITLES)
    for folder in sorted(
        folders, key=lambda each: (order.index(each.name) if each.name in order else len(order), each.name)
    ):
        described = [each for path in sorted(folder.glob("*.sql")) if (each := _described(path))]
        if described and folder.name not in _LEFT_OUT:
            found.setdefault(_TITLES.get(folder.name, folder.name.replace("_", " ").capitalize()), []).extend(described)
    return found


def reference() -> str:
    """The page."""
    return "\n".join([_HEAD, *(line for title, found in functions().items() for line in _section(title, found))])


def _folder() -> Path:
    return Path(str(sql.__file__)).parent / "functions"


def _described(path: Path) -> Described | None:
    text = re.sub(r"^ *-- </?\w+ settings(?:: [\w ]+)?>\n", "", path.read_text(), flags=re.M)
    match = _FUNCTION.search(text)
    if match is None:
        return None
    name, parameters, returns, header = match.groups()
    kept = [part.strip() for part in re.split(r",\n", parameters.strip()) if part.strip()]
    return Described(
        name, tuple(each for each in kept if not each.startswith("caller ")), " ".join(returns.split()), header.strip()
    )


def _section(title: str, found: list[Described]) -> Iterator[str]:
    yield f"## {title}\n"
    before = ""
    for each in found:
        if each.name != before:
            yield f"### `{each.name}`\n"
        before = each.name
        yield f"```sql\n{_signature(each)}\n```\n"
        lead, _, rest = each.text.partition("\n\n")
        yield f"{_prose(lead)}\n"
        if details := _without_reasons(rest):
            yield f"```text\n{details}\n```\n"


def _signature(function: Described) -> str:
    line = f"postbus.{function.name}({', '.join(function.parameters)}) returns {function.returns}"
    if len(line) <= 110:
        return line
    inner = ",\n".join(f"    {each}" for each in function.parameters)
    return f"postbus.{function.name}(\n{inner}\n) returns {function.returns}"


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")


def _without_reasons(text: str) -> str:
    """Parameters, results and errors. What a function touches and locks, and why it is built so, is for its file."""
    blocks = []
    for block in text.split("\n\n"):
        lines = re.split(r"^(?=(?:Touches|Locks|Hot|Returns, raises)\b)", block, flags=re.M)
        if kept := lines[0].strip("\n"):
            blocks.append(kept)
    return "\n\n".join(blocks)
