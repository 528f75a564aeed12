"""Migrates a database to the schema of this version of Postbus, or checks whether it is current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg

from postbus import sql
from postbus.db.errors import translate
from postbus.model.errors import MigrationDue

# One installer at a time, in each database. A single 64-bit key: publishers' locks and mutexes have two.
_INSTALL_LOCK: Final = 0x706F737462757300

IS_INSTALLED: Final = "select to_regclass('postbus_data.installation') is not null"
STATE: Final = """
select (select max(m.number) from postbus_data.migration as m), (select i.functions_digest from postbus_data.installation as i)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of `migrate`: its name and statements."""

    name: str
    statements: str


@dataclass(frozen=True, slots=True)
class InstalledState:
    """The state of a database: its last migration (0 for none) and the digest of its functions."""

    number: int
    functions_digest: str | None


def pending(state: InstalledState) -> list[Step]:
    """The steps that a database still needs; empty if it is up to date.

    Raises:
        MigrationDue: The database is newer than this version of Postbus.
    """
    known = sql.migrations()
    if state.number > known[-1].number:
        raise MigrationDue(
            f"this database is at step {state.number} of Postbus's migrations, and this version knows {known[-1].number}",
            "upgrade this Postbus: pip install --upgrade postbus",
        )
    if state.number == 0:
        return [Step("install", f"{sql.tables()}\n{sql.functions()}\n{sql.records()}")]
    steps = [Step(f"{m.number:04d}_{m.name}", m.statements) for m in known if m.number > state.number]
    if steps or state.functions_digest != sql.functions_digest():
        steps.append(Step("functions", f"{sql.functions()}\n{sql.records()}"))
    return steps


def check(state: InstalledState) -> None:
    """Refuse a database that is not up to date.

    Raises:
        MigrationDue: It is older or newer than this version.
    """
    steps = pending(state)
    if steps and state.number == 0:
        raise MigrationDue("Postbus is not installed in this database", "run: postbus migrate")
    if steps:
        names = ", ".join(step.name for step in steps)
        raise MigrationDue(
            f"this database is older than this version of Postbus: it lacks {names}", "run: postbus migrate"
        )


def migrate(url: str, *, dry_run: bool = False) -> list[Step]:
    """Bring a database up to date.

    Each step is a transaction. If another process is migrating, this one waits, and then has nothing to do.

    Args:
        url: The database.
        dry_run: Do not change anything.

    Returns:
        The steps, done or, with dry_run, due.

    Raises:
        postbus.Error: The database cannot be reached, has another encoding than UTF8, is newer than this version, or refuses a
            step.
    """
    try:
        # The steps are written in UTF-8. In SQL_ASCII, which PGCLIENTENCODING or the database may ask for, text comes as bytes.
        with psycopg.connect(url, autocommit=True, client_encoding="UTF8") as connection:
            _check_encoding(connection)
            # Whatever the database's default: a snapshot from before the wait for the lock would not see what another did.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            if dry_run:
                return pending(_state(connection))
            return _take_steps(connection)
    except psycopg.Error as error:
        raise translate(error, under_way=False) from error


def _check_encoding(connection: psycopg.Connection[Any]) -> None:
    """Refuse a database that cannot hold every message: only UTF8 can. The install script has the same check."""
    row = connection.execute("select current_database(), getdatabaseencoding()").fetchone()
    if row is not None and row[1] != "UTF8":
        raise MigrationDue(
            f'the encoding of database "{row[0]}" is {row[1]}, and Postbus needs UTF8',
            "make another, and name that: create database postbus encoding 'UTF8' template template0",
        )


def _take_steps(connection: psycopg.Connection[Any]) -> list[Step]:
    taken: list[Step] = []
    while True:
        # The lock is the transaction's, so it also holds behind a pooler; what is pending is read anew under it.
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_INSTALL_LOCK,))
            steps = pending(_state(connection))
            if not steps:
                return taken
            connection.execute(steps[0].statements.encode())
            _record(connection, steps[0])
        taken.append(steps[0])


def _record(connection: psycopg.Connection[Any], step: Step) -> None:
    for migration in sql.migrations():
        if step.name == f"{migration.number:04d}_{migration.name}":
            connection.execute(
                "insert into postbus_data.migration (number, name) values (%s, %s)", (migration.number, migration.name)
            )
            # A step may drop functions together with a type; so they are due after it, also if their text is the same.
            connection.execute("update postbus_data.installation set functions_digest = 'due'")


def _state(connection: psycopg.Connection[Any]) -> InstalledState:
    installed = connection.execute(IS_INSTALLED).fetchone()
    if installed is None or not installed[0]:
        return InstalledState(0, None)
    row = connection.execute(STATE).fetchone()
    return InstalledState(*row) if row is not None else InstalledState(0, None)
