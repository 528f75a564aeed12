"""The engine: plain .sql files, put together here into one install script.

`tables/`, `functions/` and `templates/` are what a fresh database gets. `migrations/` holds the numbered steps that bring the
tables of an older one to the same state; the functions are then replaced by the present ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

TABLES = (
    "schema",
    "migration",
    "stream",
    "segment",
    "dedup",
    "schedule",
    "consumer",
    "channel",
    "spark",
    "lake",
    "ingest",
    "backfill",
    "types",
    "token",
    "role",
    "push",
    "webhook",
    "upkeep",
    "source",
    "task",
    "sqs",
)

_REGION_MARK: Final = re.compile(r"^ *-- </?\w+ settings(?:: [\w ]+)?>\n", re.M)


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered step. Number 1 is the first install and has no file."""

    number: int
    name: str
    statements: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every step that this version knows, in order."""
    first = Migration(number=1, name="install", statements="")
    return (first, *sorted(_numbered_files(), key=lambda migration: migration.number))


def _numbered_files() -> list[Migration]:
    found = []
    for file in _root().joinpath("migrations").iterdir():
        if match := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            found.append(Migration(int(match[1]), match[2], file.read_text()))
    return found


@cache
def tables() -> str:
    """The statements that create schemas, tables and types."""
    return "\n".join(_text(_root().joinpath("tables", f"{name}.sql")) for name in TABLES)


@cache
def functions() -> str:
    """The statements that create or replace every function."""
    sources = [_text(file) for file in _sql_files(_root().joinpath("functions"))]
    sources += [_template(file) for file in sorted(_root().joinpath("templates").iterdir(), key=lambda file: file.name)]
    # The default of an argument of many others: it has to be there before them.
    sources.insert(0, _root().joinpath("functions", "role", "current_caller.sql").read_text())
    # Bodies may speak of functions that come later.
    return "set local check_function_bodies = off;\n\n" + "\n".join(sources)


def _sql_files(folder: Traversable) -> Iterator[Traversable]:
    """The .sql files of a folder and of those within it, in order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sql_files(entry)
        elif entry.name.endswith(".sql"):
            yield entry


def _text(file: Traversable) -> str:
    """A file without the lines that mark what is made from the settings."""
    return _REGION_MARK.sub("", file.read_text())


def _template(file: Traversable) -> str:
    """The statement that creates the function which returns a template."""
    name = file.name.removesuffix(".sql")
    return (
        f"create or replace function postbus_data.{name}_template()\nreturns text\nlanguage sql\nimmutable\nas $function$\n"
        f"/* The text of templates/{file.name}. */\n    select $template$\n{file.read_text()}$template$\n$function$;\n"
    )


@cache
def functions_digest() -> str:
    """Names the text of the functions and of what follows them: a database with another digest has other functions."""
    return hashlib.sha256(f"{functions()}{_finish()}".encode()).hexdigest()[:16]


def records() -> str:
    """The statements that finish an install or upgrade, and record it."""
    rows = ", ".join(f"({m.number}, '{m.name}')" for m in migrations())
    return (
        f"insert into postbus_data.migration (number, name) values {rows} on conflict do nothing;\n"  # noqa: S608
        f"insert into postbus_data.installation (functions_digest) values ('{functions_digest()}')\n"
        "on conflict (singleton) do update set functions_digest = excluded.functions_digest;\n"
        f"{_finish()}"
    )


def _finish() -> str:
    return _root().joinpath("finish.sql").read_text() + _table_comments()


def _table_comments() -> str:
    """The comment above each table, as Postgres stores it and psql shows it."""
    found = re.findall(r"((?:^-- .*\n)+)create (?:unlogged )?table (postbus_data\.\w+)", tables(), flags=re.MULTILINE)
    lines = []
    for comment, table in found:
        text = " ".join(line.removeprefix("--").strip() for line in comment.splitlines()).replace("'", "''")
        lines.append(f"comment on table {table} is '{text}';\n")
    return "".join(lines)


def install_script() -> str:
    """The whole install as one file for psql."""
    header = (
        "-- Postbus, the whole install in one file: psql -v ON_ERROR_STOP=1 -f install.sql\n"
        "-- Made from tables/ and functions/ by `make generate`; do not edit.\n\n"
        "set client_encoding = 'UTF8';\n"
        "begin;\n\n"
    )
    return f"{header}{tables()}\n{functions()}\n{records()}\ncommit;\n"


def _root() -> Traversable:
    return files(__name__)
