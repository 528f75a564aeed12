"""Every error of Postbus, with its four faces: a Python class, an SQLSTATE, an HTTP status and a CLI exit status."""

from __future__ import annotations

from typing import ClassVar, Self

from postbus.model.advice import Advice, Surface


class Error(Exception):
    """The base of all errors of Postbus.

    Attributes:
        message: What happened, in one line.
        hint: What to do about it, or None. In Python, if it depends on who is told.
        advice: The same for all who may be told, or None.
        sqlstate: The code by which SQL functions raise it.
        http_status: The status by which the server answers it.
        exit_status: The status with which the command line ends.
    """

    sqlstate: ClassVar[str] = "PB500"
    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint
        self.advice: Advice | None = None

    @classmethod
    def advised(cls, message: str, advice: Advice) -> Self:
        """An error whose hint depends on who is told."""
        error = cls(message, advice.said("python"))
        error.advice = advice
        return error

    def hint_for(self, surface: Surface) -> str | None:
        """The hint in the language of whoever is told."""
        return self.hint if self.advice is None else self.advice.said(surface)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InvalidInput(Error):
    """A name, key, message or setting is not allowed."""

    sqlstate = "PB400"
    http_status = 400
    exit_status = 2


class NotAllowed(Error):
    """The role may not do this."""

    sqlstate = "PB403"
    http_status = 403
    exit_status = 4


class NotFound(Error):
    """What was named does not exist."""

    sqlstate = "PB404"
    http_status = 404
    exit_status = 3


class Conflict(Error):
    """What was asked for does not go with what is there: it exists already, or holds another type of data."""

    sqlstate = "PB409"
    http_status = 409
    exit_status = 4


class WrongIsolation(Error):
    """The transaction keeps its snapshot, so a message could be skipped for ever. Use READ COMMITTED."""

    sqlstate = "PB412"
    http_status = 409
    exit_status = 4


class TooLarge(Error):
    """A message or a batch is larger than allowed."""

    sqlstate = "PB413"
    http_status = 413
    exit_status = 2


class Unavailable(Error):
    """Postgres cannot be reached, or cannot do this now. Nothing was done; trying again later may help."""

    sqlstate = "PB503"
    http_status = 503
    exit_status = 5


class ConnectionLost(Unavailable):
    """The connection broke while a call was under way: it may or may not have taken effect."""

    sqlstate = "PB504"
    http_status = 504


class StreamFull(Error):
    """The stream's limit is reached, and nothing of it may be dropped. It takes messages again once there is room."""

    sqlstate = "PB507"
    http_status = 507
    exit_status = 5


class MigrationDue(Error):
    """The database lacks what this version of Postbus needs, or is newer than it."""

    sqlstate = "PB505"
    http_status = 503
    exit_status = 6


class EmbeddedError(Error):
    """The embedded Postgres cannot be started or used here."""

    sqlstate = "PB506"
    http_status = 503
    exit_status = 7


def all_errors() -> list[type[Error]]:
    """Every error class of this page, `Error` first: what is derived from them elsewhere has no face of its own."""
    found: list[type[Error]] = [Error]
    for error in found:
        found.extend(kind for kind in error.__subclasses__() if kind.__module__ == __name__)
    return found
