"""An operation as a value: its call in SQL and over HTTP, and the decoders of both results."""

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
    """Among parameters, stands for the type of the stream."""


DATA_TYPE: Final = _TypeOfData()


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the API.

    Attributes:
        method: The HTTP method.
        path: The path, with {names}.
        scope: What a token must allow on the stream of the path.
        also: Other scopes that are sufficient.
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


# Not frozen: a frozen dataclass takes three times as long to create, and each call creates one.
@dataclass(slots=True)
class Sql(Generic[Result]):
    """A statement.

    Attributes:
        statement: Its text, with $1, $2, ….
        parameters: Its parameters.
        decode: Decodes its rows.
        next_page: The parameters of the next statement, given the result of this one; None when there is no more. The
            results are added up.
        afterwards: Another operation to run after this one has been committed.
        own: The stream, and the same statement by a function of that stream's own, given its id: faster, and gone when the
            stream is.
    """

    statement: str
    parameters: Sequence[Any]
    decode: Callable[[list[Row]], Result]
    next_page: Callable[[Result], Sequence[Any] | None] | None = None
    afterwards: Callable[[], Call[Any]] | None = None
    own: tuple[str, Callable[[int], str]] | None = None


@dataclass(slots=True)
class DataSql(Generic[Result]):
    """A statement that returns the data of messages, which is decoded by the type of their stream.

    Attributes:
        stream: The stream.
        statement: Its text.
        parameters: Its parameters, among them perhaps DATA_TYPE; or a function of the type that returns them.
        decode: Decodes its rows, given the type of the stream.
    """

    stream: str
    statement: str
    parameters: Sequence[Any] | Callable[[DataType], Sequence[Any]]
    decode: Callable[[DataType, list[Row]], Result]


@dataclass(slots=True)
class Program(Generic[Result]):
    """What takes more than a statement: a function of the URL of the bus's database, which may take its time.

    Attributes:
        run: The function. It is run in a thread.
    """

    run: Callable[[str], Result]


@dataclass(slots=True)
class Http(Generic[Result]):
    """A request.

    Attributes:
        route: Its route.
        names: The names in its path.
        decode: Decodes its response.
        query: Its query parameters; None leaves one out.
        body: The fields of its body; None leaves one out.
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
        repeatable: Running it twice does no harm, so a transport repeats it after a lost connection.
        redelivers: It may make messages available, so waiting receivers should poll.
    """

    sql: Sql[Result] | DataSql[Result] | Program[Result]
    http: Http[Result] | None
    repeatable: bool = False
    redelivers: bool = False

    def as_sql(self) -> tuple[str, list[Any]]:
        """The statement and its parameters, for another connection. The type of the stream is not checked."""
        if isinstance(self.sql, Program):
            raise TypeError("this operation is no statement")
        given = self.sql.parameters
        values = given("json") if callable(given) else given
        return self.sql.statement, [None if value is DATA_TYPE else value for value in values]


def first(rows: list[Row]) -> Any:
    """The only value of the only row."""
    return rows[0][0]


def nothing(answer: Any) -> None:
    """Decode nothing."""


def count(answer: Answer) -> int:
    """A count in the JSON of an answer."""
    return int(answer.data["count"])


def counted(answer: Answer) -> int:
    """A count in the header of an answer."""
    return answer.count
