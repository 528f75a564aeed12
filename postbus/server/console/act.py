"""What a form does, as a value: it can be run, or shown as curl, Python and SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from postbus.codec import fields
from postbus.html.markup import Html, join, tag
from postbus.http.request import Request
from postbus.operations.call import Call
from postbus.server.console.visit import Visit

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
    """

    call: Call[Any]
    python: str
    said: Callable[[Any], str]
    to: str
    stream: str | None

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
            _block("Python", f"import postbus\n\nbus = postbus.connect()\n{self.python}"),
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
        value = value.decode(errors="replace")
    if isinstance(value, list | tuple):
        return f"array[{', '.join(map(sql_literal, value))}]"
    return "'" + str(value).replace("'", "''") + "'"


def _block(name: str, text: str) -> Html:
    return tag(
        "div",
        tag("h3", name),
        tag("pre", tag("code", text), data_copy=""),
        class_="code-block",
    )


def arguments(**given: object) -> str:
    """Named arguments as Python writes them; None leaves one out."""
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
