"""Error responses: always a summary, a code and a hint, never a stack trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from postbus.model import errors
from postbus.model.advice import Advice
from postbus.server.fields import WORDS


class Problem(Exception):
    """The error response to a request.

    Attributes:
        status: The HTTP status.
        code: The kind of error, for programs.
        summary: What happened, in one line.
        hint: What to do about it.
        validation_errors: What is wrong with each field.
        headers: Headers of the response.
        advice: The hint for clients that say it in words of their own.
    """

    def __init__(
        self,
        status: int,
        code: str,
        summary: str,
        *,
        hint: str | None = None,
        validation_errors: Mapping[str, list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        advice: Advice | None = None,
    ) -> None:
        super().__init__(summary)
        self.status = status
        self.code = code
        self.summary = summary
        self.hint = hint
        self.validation_errors = validation_errors
        self.headers = headers or {}
        self.advice = advice


class ErrorAnswer(msgspec.Struct, omit_defaults=True):
    summary: str
    code: str
    hint: str | None = None
    validation_errors: dict[str, list[str]] | None = None
    advice: AdviceAnswer | None = None


class AdviceAnswer(msgspec.Struct, omit_defaults=True):
    """The hint as a code and what it names, for clients that say it in words of their own."""

    code: str
    facts: dict[str, str] = {}


_GENERAL: Final = Advice("see_reference")
# Hints for errors that have none of their own.
_HINTS: Final = {
    "invalid_json": "send JSON in UTF-8, such as {}; see /api/openapi.json",
    "invalid_http": "send an HTTP/1.1 request",
    "invalid_input": "see /api/openapi.json",
    "forbidden": "ask the administrator of this server for a token that allows it",
    "not_found": "/api/streams lists streams, and /api/streams/{stream}/consumers consumers",
    "conflict": "check the existing one, or choose another name",
    "too_large": "send less at once",
    "too_slow": "send the request faster, or in parts",
}
# A lost connection is a 503 too, so that clients need only one status. Its code says that the outcome is unknown.
_STATUS: Final[dict[type[errors.Error], int]] = {errors.ConnectionLost: 503}
_RETRY_AFTER: Final = {"retry-after": "1"}


def of_error(error: errors.Error, *, invalid_status: int = 400) -> Problem:
    """The response to an error of the library."""
    kind = type(error)
    status = _STATUS.get(kind, error.http_status)
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    hint, advice = error.hint_for("http"), error.advice
    if status == 400:
        fields = {_field_of(error.message): [error.message]}
        return Problem(invalid_status, code, error.message, hint=hint, validation_errors=fields, advice=advice)
    if status >= 500:
        hint = hint or "try again in a moment"
        headers = _RETRY_AFTER if status == 503 else None
        return Problem(status, code, error.message, hint=hint, headers=headers, advice=advice)
    return Problem(status, code, error.message, hint=hint, advice=advice)


def of_validation(error: msgspec.MsgspecError, *, status: int) -> Problem:
    """The response to an invalid body or query."""
    what, _, where = str(error).partition(" - at `")
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, "invalid_json", f"the body is not JSON: {what}")
    field = where.rstrip("`").removeprefix("$").removeprefix(".") or "body"
    return invalid(field, _in_words(what), status=status)


def _in_words(what: str) -> str:
    pattern = what.partition("matching regex ")[2]
    words = next((words for known, words in WORDS.items() if repr(known) == pattern), None)
    return what if words is None else f"is not valid; expected: {words}"


def invalid(field: str, what: str, *, status: int = 400, hint: str | None = None) -> Problem:
    """The response to an invalid field."""
    return Problem(status, "invalid_input", f"{field}: {what}", hint=hint, validation_errors={field: [what]})


def not_in_scope(scope: str, where: str) -> Problem:
    """The response to a request that its token does not allow."""
    advice = Advice("scope_needed", {"scope": scope})
    summary = f'this token does not allow "{scope}" {where}'
    return Problem(403, "forbidden", summary, hint=advice.said("http"), advice=advice)


def answer(problem: Problem) -> ErrorAnswer:
    advice = problem.advice or (_GENERAL if problem.hint is None else None)
    return ErrorAnswer(
        summary=problem.summary,
        code=problem.code,
        hint=problem.hint or _HINTS.get(problem.code, _GENERAL.said("http")),
        validation_errors=None if problem.validation_errors is None else dict(problem.validation_errors),
        advice=None if advice is None else AdviceAnswer(advice.code, dict(advice.facts)),
    )


def _field_of(message: str) -> str:
    """The setting that an error of Postgres is about: "max_deliver = 0 is not between …"."""
    found = re.match(r"(\w+) = ", message)
    return found[1] if found else "base"
