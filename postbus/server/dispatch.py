"""Turns the bytes of a request into a call of its endpoint, and the result into JSON."""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from postbus.server import browsers, problems
from postbus.server.bodies import read_body
from postbus.server.endpoint import Call, Endpoint
from postbus.server.problems import Problem, not_in_scope
from postbus.server.requests import Request

if TYPE_CHECKING:
    from postbus.server.state import AppState

_encode: Final = msgspec.json.Encoder().encode


class Dispatcher:
    """Turns requests to one endpoint into calls of its function, and results into JSON."""

    def __init__(self, endpoint: Endpoint, state: AppState) -> None:
        self._endpoint = endpoint
        self._state = state
        self._decoder = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
        self._times = _times_of(endpoint.query)
        self._waits = hasattr(endpoint.query, "wait_for") or hasattr(endpoint.body, "wait_for")

    async def answer(self, request: Request) -> tuple[bytes, dict[str, str]]:
        """The JSON of the response, and its headers.

        Raises:
            Problem: The request is refused.
            postbus.Error: The library refused.
        """
        endpoint = self._endpoint
        call = await self._let_in(request)
        arguments: dict[str, Any] = {}
        if endpoint.query is not None:
            arguments["query"] = self._query(request)
        if self._decoder is not None:
            body = await read_body(request, self._state.settings.max_body_bytes)
            if body or not endpoint.body_optional:
                arguments["body"] = self._body(body)
        if endpoint.is_long:
            result = await endpoint.handler(call, **arguments)
        else:
            wait = max(map(_wait_of, arguments.values())) if self._waits else 0.0
            with self._state.deadlines.kept(wait):
                result = await endpoint.handler(call, **arguments)
        return _encode(result), call.headers

    async def _let_in(self, request: Request) -> Call:
        endpoint, state = self._endpoint, self._state
        route = endpoint.route
        if endpoint.leases and state.settings.is_open and not browsers.may_lease(request.method, request.headers):
            hint = "use curl or another program; pages of this server may use fetch"
            raise Problem(403, "forbidden", "following a link in a browser must not lease messages", hint=hint)
        token = await state.guard.identify(request.header(b"authorization"))
        named = request.parameters.get("stream")
        if named is None:
            call = Call(state, request, token, "", "")
            if route.on_all_streams or route.scope not in token.scopes:
                call.demand(route.scope, None)
            return call
        stream = await state.names.stream_name(named)
        if not token.may(route.scope, stream) and not any(token.may(scope, stream) for scope in route.also):
            # Named as in the path: this token must not learn the name behind an id.
            raise not_in_scope(route.scope, f'on stream "{named}"')
        consumer = request.parameters.get("consumer") or request.parameters.get("group", "")
        if consumer:
            consumer = await state.names.consumer_name(stream, consumer)
        return Call(state, request, token, stream, consumer)

    def _query(self, request: Request) -> Any:
        given: dict[str, str] = {}
        known = self._endpoint.query.__struct_fields__
        for name, value in parse_qsl(request.query.decode("latin-1"), keep_blank_values=True):
            if name not in known:
                raise problems.invalid(name, "is not a parameter of this endpoint", hint=did_you_mean(name, known))
            if name in given:
                raise problems.invalid(name, "is given twice")
            if name in self._times and value[4:5] != "-":
                # A number would be taken for seconds since 1970.
                raise problems.invalid(name, "is not a time such as 2026-01-31T12:00:00Z")
            given[name] = value
        try:
            return msgspec.convert(given, self._endpoint.query, strict=False)
        except msgspec.ValidationError as error:
            raise problems.of_validation(error, status=400) from None

    def _body(self, body: bytes) -> Any:
        assert self._decoder is not None  # noqa: S101
        try:
            try:
                return self._decoder.decode(body)
            except msgspec.ValidationError as error:
                if "got `float`" not in str(error):
                    raise
            # In JSON Schema 4.0 is an integer, and some clients write integers that way.
            return msgspec.convert(_with_integers(msgspec.json.decode(body)), self._endpoint.body)
        except msgspec.MsgspecError as error:
            raise self._refusal(error) from None
        except UnicodeDecodeError:
            raise Problem(400, "invalid_json", "the body is not UTF-8") from None
        except RecursionError:
            raise Problem(400, "invalid_json", "the body is nested too deeply") from None

    def _refusal(self, error: msgspec.MsgspecError) -> Problem:
        problem = problems.of_validation(error, status=self._endpoint.invalid_status)
        unknown = str(error).partition("unknown field `")[2].partition("`")[0]
        # The known names are those of the top level, so they do not help with a nested field.
        if unknown and " - at " not in str(error):
            problem.hint = did_you_mean(unknown, getattr(self._endpoint.body, "__struct_fields__", ()))
        return problem


def _wait_of(given: Any) -> float:
    """How many seconds a body or query asks to wait for messages."""
    milliseconds: int = getattr(given, "wait_for", 0)
    return milliseconds / 1000


def _times_of(query: Any) -> frozenset[str]:
    """The names of the query parameters that are times."""
    types = {} if query is None else get_type_hints(query)
    return frozenset(name for name, kind in types.items() if datetime in (kind, *getattr(kind, "__args__", ())))


def _with_integers(value: Any) -> Any:
    """The value with whole floats as integers, except in users' data."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if isinstance(value, dict):
        return {name: each if name == "data" else _with_integers(each) for name, each in value.items()}
    return value


# What users of other APIs, and of this library, may write.
_ALSO_CALLED: Final = {
    "filter": "filter_key_pattern",
    "max_messages": "batch_size",
    "wait": "wait_for",
    "delay": "delay_ms",
}


def did_you_mean(name: str, known: tuple[str, ...]) -> str | None:
    meant = _ALSO_CALLED.get(name)
    if meant in known:
        return f'did you mean "{meant}"?'
    near = difflib.get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(known)}"
