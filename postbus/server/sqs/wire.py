"""Answers requests of clients of SQS: reads them by their protocol, finds out who sent them, and runs the operation."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.model import errors
from postbus.model.sqs import ServedSqsQueue
from postbus.model.token import Token
from postbus.server import logs
from postbus.server.bodies import read_body
from postbus.server.problems import Problem
from postbus.server.requests import Request, Response
from postbus.server.sqs import protocol_json, protocol_query, receiving, shapes, signatures
from postbus.server.sqs.call import SqsCall
from postbus.server.sqs.errors import SqsError, denied, missing, no_such_queue
from postbus.server.sqs.known import KnownQueues, name_in, streams_for
from postbus.server.sqs.table import OPERATIONS, Operation

if TYPE_CHECKING:
    from postbus.server.state import AppState

_is_path: Final = re.compile(r"/|/(?:[0-9]{12}|queue)/[A-Za-z0-9_.%-]{1,240}/?").fullmatch
_JSON: Final = b"application/x-amz-json"
_FORM: Final = b"application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request as its protocol has read it.

    Attributes:
        name: The name of the operation.
        read: Its input, given the shape.
        answer: The response to a result.
        refusal: The response to an error.
    """

    name: str
    read: Callable[[type[shapes.Shape]], Any]
    answer: Callable[[shapes.Shape | None], Response]
    refusal: Callable[[SqsError], Response]


class SqsWire:
    """The SQS wire of a process."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._known = KnownQueues(state.connection)

    def is_for(self, request: Request) -> bool:
        """Whether a request speaks SQS: by a POST to the root or to the URL of a queue."""
        if request.method != "POST" or not _is_path(request.raw_path):
            return False
        kind = request.headers.get(b"content-type", b"")
        return b"x-amz-target" in request.headers or kind.startswith((_FORM, _JSON)) or b"Action=" in request.query

    async def answer(self, request: Request) -> Response:
        request.route = "sqs"
        body = await read_body(request, self._state.settings.max_body_bytes)
        try:
            asked = _asked(request, body)
        except SqsError as error:
            return protocol_query.refusal(error, request.id)
        try:
            return asked.answer(await self._run(asked, request, body))
        except SqsError as error:
            return asked.refusal(error)
        except Problem as problem:
            return asked.refusal(_of_problem(problem))
        except errors.Error as error:
            if error.http_status >= 500 and not isinstance(error, (errors.Unavailable, errors.ConnectionLost)):
                logs.failure(request.id, error)
            return asked.refusal(_of_error(error))

    async def _run(self, asked: _Asked, request: Request, body: bytes) -> Any:
        token = await self._identify(request, body)
        operation = OPERATIONS.get(asked.name)
        if operation is None:
            raise SqsError(
                "UnknownOperationException", f"The action {asked.name[:100]} is not valid for this endpoint."
            )
        request.route = f"sqs/{operation.name}"
        given = asked.read(operation.given)
        if operation.is_of_queue and given.queue_url is None and request.path != "/":
            given.queue_url = request.path
        _check_required(given)
        region = signatures.region_of(request.header(b"authorization") or "")
        call = SqsCall(self._state, request, token, region, self._known)
        if not operation.is_of_queue:
            with self._state.deadlines.kept(0):
                return await operation.handler(call, given)
        return await self._on_queue(call, operation, given)

    async def _on_queue(self, call: SqsCall, operation: Operation, given: Any) -> Any:
        name = name_in(given.queue_url)
        queue = await self._find(call, operation, name)
        wait = receiving.wait_of(given, queue) if isinstance(given, shapes.ReceiveMessage) else 0
        try:
            with self._state.deadlines.kept(wait):
                return await operation.handler(call, given, queue)
        except errors.NotFound:
            # It was deleted by another process less than a second ago; perhaps there is a new one.
            self._known.forget(name)
            queue = await self._find(call, operation, name)
            with self._state.deadlines.kept(wait):
                return await operation.handler(call, given, queue)

    async def _find(self, call: SqsCall, operation: Operation, name: str) -> ServedSqsQueue:
        """The queue of a request that its token allows."""
        try:
            queue = await self._known.find(name)
        except SqsError:
            # A token for other streams does not learn which queues there are.
            call.demand(streams_for(name)[0], *operation.scopes)
            raise
        call.demand(queue.stream, *operation.scopes)
        return queue

    async def _identify(self, request: Request, body: bytes) -> Token:
        """The token whose key pair has signed the request, or that it carries."""
        guard = self._state.guard
        if self._state.settings.is_open:
            return await guard.identify(None)
        signed = signatures.parse(request)
        if signed is None:
            authorization = request.header(b"authorization")
            if authorization is None:
                raise SqsError("MissingAuthenticationTokenException", "Request is missing Authentication Token")
            return await guard.identify(authorization)
        found = await guard.find_key(signed.access_key_id)
        if found is None:
            raise SqsError("UnrecognizedClientException", "The security token included in the request is invalid.")
        token, secret = found
        signatures.verify(signed, secret, request, body, time.time())
        guard.admit(token)
        return token


def _asked(request: Request, body: bytes) -> _Asked:
    """What a request asks, by its protocol.

    Raises:
        SqsError: It is a form that cannot be read.
    """
    target = request.header(b"x-amz-target")
    if target is not None:
        return _Asked(
            protocol_json.operation_of(target),
            lambda shape: protocol_json.read(body, shape),
            lambda result: protocol_json.answer(result, request.id),
            lambda error: protocol_json.refusal(error, request.id),
        )
    form = protocol_query.form_of(request.query, body)
    name = form.get("Action", "")
    return _Asked(
        name,
        lambda shape: protocol_query.read(form, shape),
        lambda result: protocol_query.answer(name, result, request.id),
        lambda error: protocol_query.refusal(error, request.id),
    )


def _check_required(given: shapes.Shape) -> None:
    for name in given.required:
        if getattr(given, name) is None:
            raise missing(given.__struct_encode_fields__[given.__struct_fields__.index(name)])


def _of_problem(problem: Problem) -> SqsError:
    if problem.status == 429:
        return SqsError("RequestThrottled", problem.summary)
    if problem.status == 401:
        message = f"The security token included in the request is invalid: {problem.summary}."
        return SqsError("UnrecognizedClientException", message)
    if problem.status == 403:
        return denied(problem.summary)
    if problem.status < 500:
        return SqsError("InvalidParameterValueException", problem.summary)
    return SqsError("ServiceUnavailable", problem.summary)


def _of_error(error: errors.Error) -> SqsError:
    """An error of the library, in words of SQS."""
    if isinstance(error, errors.NotFound):
        return no_such_queue()
    message = error.message if error.hint is None else f"{error.message} ({error.hint_for('http')})"
    if error.http_status >= 500:
        return SqsError("ServiceUnavailable", message)
    if error.http_status == 409:
        return SqsError("UnsupportedOperation", message)
    return SqsError("InvalidParameterValueException", message)
