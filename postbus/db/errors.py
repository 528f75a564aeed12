"""Errors of Postgres and its driver, turned into those of Postbus."""

from __future__ import annotations

from typing import Final

import psycopg
import psycopg_pool

from postbus.model import errors
from postbus.model.advice import Advice

_BY_SQLSTATE: Final = {error.sqlstate: error for error in errors.all_errors()}
_NOT_INSTALLED: Final = {"3F000", "42P01", "42883"}  # No such schema, table or function.
_LOST_A_RACE: Final = {"40001", "40P01"}  # Serialization failure, deadlock.
_UNREACHABLE: Final = Advice("postgres_unreachable")
_CANNOT_NOW: Final = {"53300", "57P03", "25006"}  # Too many connections, starting up, read-only.


def translate(error: Exception, *, under_way: bool = True) -> errors.Error:
    """The Postbus error for one of the driver's.

    Args:
        error: What psycopg or its pool raised.
        under_way: A statement had been sent, so after a broken connection its outcome is unknown.
    """
    if isinstance(error, psycopg_pool.PoolClosed):
        return errors.Unavailable("this bus was closed")
    if isinstance(error, psycopg_pool.PoolTimeout | psycopg_pool.TooManyRequests):
        return errors.Unavailable.advised(f"no connection to Postgres: {_line(error)}", _UNREACHABLE)
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.Error) and sqlstate:
        return _by_sqlstate(error, sqlstate)
    if under_way and isinstance(error, psycopg.OperationalError):
        return errors.ConnectionLost(
            f"the connection to Postgres was lost: {_line(error)}", "the call may or may not have taken effect"
        )
    if isinstance(error, psycopg.OperationalError):
        return errors.Unavailable.advised(f"cannot connect to Postgres: {_line(error)}", _UNREACHABLE)
    return errors.Error(f"{type(error).__name__}: {_line(error)}")


def shown_cause(error: psycopg.Error) -> psycopg.Error | None:
    """What a traceback shows as the cause of a translated error: none for what Postbus's own SQL functions raise.

    The error's message and hint say all that they say. The driver's error stays in `__context__`.
    """
    return None if error.sqlstate in _BY_SQLSTATE else error


def _by_sqlstate(error: psycopg.Error, sqlstate: str) -> errors.Error:
    message = error.diag.message_primary or str(error)
    if error.diag.severity_nonlocalized == "PANIC":
        # Possibly during a commit.
        return errors.ConnectionLost(f"Postgres has crashed: {message}", "the call may or may not have taken effect")
    if sqlstate in _BY_SQLSTATE:
        return _raised_by_postbus(error, _BY_SQLSTATE[sqlstate], message)
    if sqlstate == "42883" and ("postbus_data.publish_" in message or "postbus_data.ack_" in message):
        return errors.NotFound("the stream was dropped")
    if _is_of_segment(message, sqlstate):
        return errors.Unavailable(f"a segment of the log was dropped meanwhile: {message}", "try again")
    if sqlstate in _NOT_INSTALLED and "postbus" in message:
        return errors.MigrationDue(f"Postbus is not installed in this database: {message}", "run: postbus migrate")
    if passing := _of_the_moment(message, sqlstate, error.diag.message_hint):
        return passing
    if sqlstate == "42501":
        return errors.NotAllowed(message, error.diag.message_hint)
    if sqlstate in _LOST_A_RACE or _is_of_dropped(message, sqlstate):
        return errors.Unavailable(f"another session changed the same rows: {message}", "try again")
    # 54001: JSON nested too deeply.
    if sqlstate.startswith("22") or sqlstate == "54001":
        return errors.InvalidInput(message, error.diag.message_hint)
    return errors.Error(f"Postgres: {message} (SQLSTATE {sqlstate})", error.diag.message_hint)


def _raised_by_postbus(error: psycopg.Error, kind: type[errors.Error], message: str) -> errors.Error:
    diag = error.diag
    if diag.message_detail:
        message = f"{message}: {diag.message_detail}"
    if diag.constraint_name is None:
        return kind(message, diag.message_hint)
    facts = {"stream": diag.schema_name, "consumer": diag.table_name}
    advice = Advice(diag.constraint_name, {name: fact for name, fact in facts.items() if fact is not None})
    return kind.advised(message, advice)


def _of_the_moment(message: str, sqlstate: str, hint: str | None) -> errors.Error | None:
    """The error for causes outside the statement: the server, the connection, or an administrator's command."""
    if sqlstate == "53200":
        return errors.Unavailable(
            f"Postgres has no room for more locks: {message}",
            "publish to fewer streams in one transaction, or raise max_locks_per_transaction of the server",
        )
    # The server ended the session: 57P01 to 57P03 by command, 08xxx by a broken line.
    if sqlstate in {"57P01", "57P02"} or sqlstate.startswith("08"):
        return errors.ConnectionLost(
            f"the connection to Postgres was lost: {message}", "the call may or may not have taken effect"
        )
    if sqlstate in _CANNOT_NOW or sqlstate.startswith("53"):
        return errors.Unavailable(f"Postgres cannot do this now: {message}", hint)
    if sqlstate == "57014":
        # Canceled by statement_timeout or by an administrator. The statement had no effect.
        advice = "try again; if it is a receive that takes too long, the consumer's filter may: give it another"
        return errors.Unavailable(f"Postgres canceled the statement: {message}", advice)
    return None


def snapshot_gone() -> errors.Unavailable:
    """The error of reading at a snapshot that no connection holds any more."""
    return errors.Unavailable("the snapshot is gone, because the connection that held it was lost", "run it again")


def refused_row(error: psycopg.DataError) -> errors.InvalidInput:
    """The error of a row that COPY refused, with Postgres's description of it."""
    said = error.diag.message_primary, error.diag.message_detail, (error.diag.context or "").partition("\n")[0]
    return errors.InvalidInput(": ".join(part for part in said if part))


def is_passing(error: psycopg.Error) -> bool:
    """Whether to repeat a statement that was its own transaction, because the database changed while it ran.

    "cached plan must not change result type" (0A000): a migration has replaced a function since the statement was prepared. Or a
    segment was dropped between two looks at the log, or a stream between two at the catalog; or it was the victim of a deadlock.
    """
    message, sqlstate = error.diag.message_primary or "", error.sqlstate or ""
    return (
        sqlstate == "0A000"
        or sqlstate in _LOST_A_RACE
        or _is_of_segment(message, sqlstate)
        or _is_of_dropped(message, sqlstate)
    )


def _is_of_dropped(message: str, sqlstate: str) -> bool:
    """Whether an object was dropped between its lookup and its use, which Postgres reports as an internal error."""
    return sqlstate == "XX000" and message.startswith(("could not open relation with OID", "cache lookup failed"))


def _is_of_segment(message: str, sqlstate: str) -> bool:
    return (sqlstate == "42P01" and "postbus_data.log_" in message) or (
        sqlstate == "42883" and "postbus_data.claim_" in message
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
