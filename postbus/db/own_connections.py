"""The types of a connection that users give: one of psycopg, or of SQLAlchemy over psycopg. SQLAlchemy need not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    OwnConnection = psycopg.Connection[Any] | Connection | Session | scoped_session[Any]
    AsyncOwnConnection = psycopg.AsyncConnection[Any] | AsyncConnection | AsyncSession | async_scoped_session[Any]
else:
    OwnConnection = AsyncOwnConnection = Any

_SESSIONS: Final = {"Session", "scoped_session", "AsyncSession", "async_scoped_session"}
_CONNECTIONS: Final = {"Connection", "AsyncConnection"}


def is_session(given: Any) -> bool:
    """Whether it is a session of SQLAlchemy."""
    return not _SESSIONS.isdisjoint(_sqlalchemy_names(given))


def is_sqlalchemy(given: Any) -> bool:
    """Whether it is a session or connection of SQLAlchemy."""
    return not (_SESSIONS | _CONNECTIONS).isdisjoint(_sqlalchemy_names(given))


def is_async(given: Any) -> bool:
    """Whether a session or connection of SQLAlchemy is to be awaited."""
    return any(name.lower().startswith("async") for name in _sqlalchemy_names(given) & (_SESSIONS | _CONNECTIONS))


def refused(given: Any, *, wants_async: bool) -> TypeError:
    """The error for a connection that cannot be used."""
    kind = type(given)
    wanted = "psycopg.AsyncConnection" if wants_async else "psycopg.Connection"
    engine = "create_async_engine" if wants_async else "create_engine"
    return TypeError(
        f"connection= takes a {wanted}, or a connection or session of SQLAlchemy over it "
        f'({engine}("postgresql+psycopg://…")), not {kind.__module__}.{kind.__qualname__}'
    )


def _sqlalchemy_names(given: Any) -> set[str]:
    return {kind.__name__ for kind in type(given).__mro__ if kind.__module__.partition(".")[0] == "sqlalchemy"}
