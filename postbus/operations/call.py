"""An operation as a value: how it is called in SQL and over HTTP, and what its answer means in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from postbus.codec.rows import Row
from postbus.http.answer import Answer
from postbus.model.stream import DataType
from postbus.model.token import Scope

Result = TypeVar("Result")
_name_in_path = re.compile(r"\{\w+\}").sub


class _TypeOfData:
    """Among parameters, stands for what the stream holds."""


DATA_TYPE: Final = _TypeOfData()


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the API.

    Attributes:
        method: The HTTP method.
        path: The path, with {names}.
        scope: What a token must allow on the stream of the path.
        also: Scopes that are enough too.
        on_all_streams: Whether the token must allow it on all streams.
    """

    method: str
    path: str
    scope: Scope
    also: tuple[Scope, ...] = ()
    on_all_streams: bool = False

    def of(self, *names: str) -> str:
        """The path with these names."""
        given = iter(names)
        return _name_in_path(lambda _: quote(next(given), safe=""), self.path)


# Not frozen: a frozen one takes three times as long to make, and each call makes one.
@dataclass(slots=True)
class Sql(Generic[Result]):
    """A statement.

    Attributes:
        statement: Its text, with $1, $2, ….
        parameters: Its parameters.
        decode: What its rows mean.
        next_page: The parameters of the next statement, given the result of this one; None when there is no more. The
            results are added up.
        afterwards: Another operation to run after this one has been committed.
    """

    statement: str
    parameters: Sequence[Any]
    decode: Callable[[list[Row]], Result]
    next_page: Callable[[Result], Sequence[Any] | None] | None = None
    afterwards: Callable[[], Call[Any]] | None = None


@dataclass(slots=True)
class DataSql(Generic[Result]):
    """A statement that returns the data of messages, which are decoded by what their stream holds.

    Attributes:
        stream: The stream.
        statement: Its text.
        parameters: Its parameters, among them perhaps DATA_TYPE.
        decode: What its rows mean in a stream of that type.
    """

    stream: str
    statement: str
    parameters: Sequence[Any]
    decode: Callable[[DataType, list[Row]], Result]


@dataclass(slots=True)
class Http(Generic[Result]):
    """A request.

    Attributes:
        route: Where to.
        names: The names in its path.
        decode: What its answer means.
        query: Its query; None stands for what is left out.
        body: Its fields; None stands for what is left out.
        nulls: Fields that are null.
    """

    route: Route
    names: Sequence[str]
    decode: Callable[[Answer], Result]
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None
    nulls: Sequence[str] = ()


@dataclass(slots=True)
class Call(Generic[Result]):
    """One call of an operation.

    Attributes:
        sql: The call over Postgres.
        http: The call over a server; None if only Postgres can run it.
        repeatable: Running it twice does no harm, so it is run again after a lost connection.
        redelivers: Messages may become available by it, so receivers that wait should look.
    """

    sql: Sql[Result] | DataSql[Result]
    http: Http[Result] | None
    repeatable: bool = False
    redelivers: bool = False

    def as_sql(self) -> tuple[str, list[Any]]:
        """The statement and its parameters, for a connection of one's own. What the stream holds is not checked."""
        return self.sql.statement, [None if value is DATA_TYPE else value for value in self.sql.parameters]


def first(rows: list[Row]) -> Any:
    """The only value of the only row."""
    return rows[0][0]


def nothing(answer: Any) -> None:
    """There is nothing to decode."""


def count(answer: Answer) -> int:
    """A count in the JSON of an answer."""
    return int(answer.data["count"])


def counted(answer: Answer) -> int:
    """A count in the header of an answer."""
    return answer.count
