"""An endpoint is a function: its parameters and result give its types, over HTTP and in the API's description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from postbus.model.token import Scope, Token
from postbus.operations.call import Route
from postbus.server.problems import not_in_scope
from postbus.server.requests import Request

if TYPE_CHECKING:
    import postbus
    from postbus.server.long_poll import Poll
    from postbus.server.state import AppState

Handler = Callable[..., Awaitable[Any]]
_Handler = TypeVar("_Handler", bound=Handler)


@dataclass(slots=True)
class Call:
    """One authorized request.

    Attributes:
        state: What all requests of this process share.
        request: The request.
        token: The token it was sent with.
        stream: The name of the stream in its path, or "".
        consumer: The name of the consumer or group in its path, or "".
        headers: Headers of the response.
    """

    state: AppState
    request: Request
    token: Token
    stream: str
    consumer: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def bus(self) -> postbus.AsyncBus:
        return self.state.connection.bus

    @property
    def reader(self) -> postbus.AsyncConsumer:
        """The consumer of the path."""
        return self.bus.consumer(self.stream, self.consumer)

    async def stream_id(self) -> str:
        return await self.state.names.stream_id(self.stream)

    def long_poll(self) -> AbstractAsyncContextManager[Poll]:
        """A wait for messages that ends when the client disconnects. The body of the request must have been read."""
        return self.state.long_polls.opened(self.request, lambda: self.state.guard.confirm(self.token))

    def demand(self, scope: Scope, stream: str | None, *, named: str | None = None) -> None:
        """Refuse the request unless its token allows this.

        Args:
            scope: What it must allow.
            stream: On which stream; None for all.
            named: The stream as the request names it: this token must not learn the name behind an id.

        Raises:
            Problem: 403, in the same words whether the stream exists or not.
        """
        if not self.token.may(scope, stream):
            where = "on all streams" if stream is None else f'on stream "{named or stream}"'
            raise not_in_scope(scope, where)

    async def stream_for(self, scope: Scope, named: str) -> str:
        """The name of another stream, which a body gives by name or id. The token must allow the scope on it.

        Raises:
            Problem: 403.
        """
        stream = await self.state.names.stream_name(named)
        self.demand(scope, stream, named=named)
        return stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path.

    Attributes:
        route: Its path, and what a token must allow.
        handler: The function that answers.
        is_long: It may take as long as its client waits.
        leases: It leases messages, though it may be a GET.
        invalid_status: The status for an invalid body or query.
        body: The type of its body, or None.
        body_optional: The body may be left out.
        query: The type of its query, or None.
        answer: The type of its result.
    """

    route: Route
    handler: Handler
    is_long: bool
    leases: bool
    invalid_status: int
    body: Any
    body_optional: bool
    query: Any
    answer: Any

    @property
    def needs(self) -> str:
        """What a token must allow, in words."""
        scopes = " or ".join((self.route.scope, *self.route.also))
        return f"{scopes} on all streams" if self.route.on_all_streams else scopes

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or self.handler.__name__).splitlines()[0]


class Endpoints:
    """Collects endpoints as they are declared."""

    def __init__(self) -> None:
        self.all: list[Endpoint] = []

    def add(
        self,
        route: Route,
        *,
        is_long: bool = False,
        leases: bool = False,
        invalid_status: int = 400,
    ) -> Callable[[_Handler], _Handler]:
        """Declare a function as an endpoint. The types are those of its parameters `body` and `query`, and of its result."""

        def declare(handler: _Handler) -> _Handler:
            types = get_type_hints(handler, include_extras=True)
            body = inspect.signature(handler).parameters.get("body")
            self.all.append(
                Endpoint(
                    route=route,
                    handler=handler,
                    is_long=is_long,
                    leases=leases,
                    invalid_status=invalid_status,
                    body=_some(types.get("body")),
                    body_optional=body is not None and body.default is None,
                    query=types.get("query"),
                    answer=types["return"],
                )
            )
            return handler

        return declare


def _some(kind: Any) -> Any:
    """X of `X | None`."""
    arguments = getattr(kind, "__args__", ())
    return next((each for each in arguments if each is not type(None)), kind) if type(None) in arguments else kind
