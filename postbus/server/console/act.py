"""What a form does, as a value: it can be run, or shown as curl, Python and SQL."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from postbus.codec import fields
from postbus.db.arrays import Array, BigintArray
from postbus.html.markup import Html, join, tag
from postbus.http.request import Request
from postbus.operations.call import Call
from postbus.server.console.visit import Page, Visit

_parameter: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Act:
    """One change that a form asks for.

    Attributes:
        call: The operation.
        python: The same in Python, after `bus = postbus.connect()`.
        said: What to say when it is done, given the result.
        to: The page to go to then.
        stream: The stream that a token must allow it on; None for all.
        then: What follows when it is done, before the next page is shown.
        page: A page to show then instead, given the result: what is shown once.
    """

    call: Call[Any]
    python: str
    said: Callable[[Any], str]
    to: str
    stream: str | None
    then: Callable[[], Awaitable[Any]] | None = None
    page: Callable[[Any], Page | None] | None = None

    def demand(self, visit: Visit) -> None:
        """Refuse it unless the token of the session allows it.

        Raises:
            Problem: 403.
        """
        http = self.call.http
        assert http is not None  # noqa: S101
        visit.demand(http.route.scope, None if http.route.on_all_streams else self.stream)

    def as_code(self, url: str, *, has_token: bool) -> Html:
        """The change in three languages."""
        return join(
            _block("curl", self._curl(url, has_token=has_token)),
            _block("Python", self._python()),
            _block("SQL", self._sql()),
        )

    def _curl(self, url: str, *, has_token: bool) -> str:
        http = self.call.http
        assert http is not None  # noqa: S101
        path = http.route.of(*http.names)
        query = "" if http.query is None else urlencode(fields.query(http.query))
        body = None if http.body is None else fields.body(http.body, nulls=http.nulls)
        return Request(
            method=http.route.method,
            url=url + path + ("?" + query if query else ""),
            headers={} if body is None else {"Content-Type": "application/json"},
            body=body,
            has_token=has_token,
        ).as_curl()

    def _python(self) -> str:
        modules = ("import datetime\n\n" if "datetime." in self.python else "") + "import postbus"
        return f"{modules}\n\nbus = postbus.connect()\n{self.python}"

    def _sql(self) -> str:
        statement, parameters = self.call.as_sql()
        # From the last one, so that $1 is not found in $10.
        return _parameter.sub(lambda found: sql_literal(parameters[int(found[1]) - 1]), statement.strip()) + ";"


def sql_literal(value: Any) -> str:
    """A parameter as SQL writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, timedelta):
        return f"interval '{value.total_seconds():g} seconds'"
    if isinstance(value, datetime):
        return f"timestamptz '{value.isoformat()}'"
    if isinstance(value, bytes):
        value = _text_of(value)
    if isinstance(value, Array):
        # Without a type of its own, so that it takes that of the function's parameter.
        value = "{" + ", ".join(map(_element, value.numbers if isinstance(value, BigintArray) else value.values)) + "}"
    return "'" + str(value).replace("'", "''") + "'"


def _text_of(value: bytes) -> str:
    """Bytes as a literal of text, JSON or bytea, whichever the parameter is; what is no text only fits into bytea."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "\\x" + value.hex()


def _element(value: bytes | int | None) -> str:
    """An element of an array, as its literal has it."""
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    return '"' + value.decode(errors="replace").replace("\\", "\\\\").replace('"', '\\"') + '"'


def _block(name: str, text: str) -> Html:
    return tag(
        "div",
        tag("h3", name),
        tag("pre", tag("code", text), data_copy=""),
        class_="code-block",
    )


def arguments(**given: object) -> str:
    """Named arguments as Python writes them; None leaves one out."""
    return ", ".join(f"{name}={_written(value)}" for name, value in given.items() if value is not None)


def _written(value: object) -> str:
    if not is_dataclass(value):
        return repr(value)
    held = {each.name: getattr(value, each.name) for each in fields_of(value)}
    return f"postbus.{type(value).__name__}({arguments(**held)})"
