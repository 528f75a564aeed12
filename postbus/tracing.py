"""Spans, for programs that use OpenTelemetry: the trace of a publish goes along in the headers of its messages.

Nothing is imported here: a program that traces has imported OpenTelemetry already, and set up where its spans go. One that has
not pays a look into a dict.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from postbus.model.delivery import Delivery
from postbus.model.message import Message

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind, Tracer

_NAME: Final = "postbus"
_is_suppressed: Final = ContextVar("postbus_tracing_is_suppressed", default=False)


def is_on() -> bool:
    """Whether this program has set up OpenTelemetry, and spans are wanted here."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or _is_suppressed.get():
        return False
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider)


@contextmanager
def suppressed() -> Iterator[None]:
    """No spans meanwhile: what is done here belongs to several traces, or to none."""
    token = _is_suppressed.set(True)
    try:
        yield
    finally:
        _is_suppressed.reset(token)


@contextmanager
def publishing(stream: str, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """A span for a publish, and the messages with its trace in their headers; what has one keeps it."""
    attributes: dict[str, str | int] = {
        "messaging.system": _NAME,
        "messaging.operation.type": "send",
        "messaging.operation.name": "publish",
        "messaging.destination.name": stream,
    }
    if len(messages) > 1:
        attributes["messaging.batch.message_count"] = len(messages)
    with _tracer().start_as_current_span(f"publish {stream}", kind=_kinds().PRODUCER, attributes=attributes):
        carried = current_headers()
        yield [_carrying(message, carried) for message in messages] if carried else messages


@contextmanager
def processing(stream: str, consumer: str, delivery: Delivery) -> Iterator[None]:
    """A span for the handling of a message, in the trace of its publish. An exception makes it one that failed."""
    from opentelemetry import propagate

    attributes: dict[str, str | int] = {
        "messaging.system": _NAME,
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": stream,
        "messaging.destination.partition.id": str(delivery.partition),
        "messaging.consumer.group.name": consumer,
        "messaging.message.id": str(delivery.seq),
        "messaging.postbus.attempt": delivery.attempt,
    }
    if delivery.key is not None:
        attributes["messaging.postbus.key"] = delivery.key
    with _tracer().start_as_current_span(
        f"process {stream}",
        context=propagate.extract(dict(delivery.headers or {})),
        kind=_kinds().CONSUMER,
        attributes=attributes,
    ):
        yield


@contextmanager
def serving(method: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """A span for a request, in the trace of whoever sent it."""
    from opentelemetry import propagate

    with _tracer().start_as_current_span(
        method,
        context=propagate.extract(dict(headers)),
        kind=_kinds().SERVER,
        attributes={"http.request.method": method},
    ) as span:
        yield span


def answered(span: Span, *, method: str, route: str, status: int) -> None:
    """Say what became of a request."""
    from opentelemetry.trace import StatusCode

    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_status(StatusCode.ERROR)


def current_headers() -> dict[str, str]:
    """The headers that carry the current trace, as the program's propagators write them."""
    from opentelemetry import propagate

    carried: dict[str, str] = {}
    propagate.inject(carried)
    return carried


def _carrying(message: Message, carried: Mapping[str, str]) -> Message:
    if not isinstance(message, Message):
        return message  # It is refused, and its place named, when it is encoded.
    own = message.headers
    if own is None:
        return replace(message, headers=carried)
    # Whoever has set one of them has chosen the trace; what is no mapping is refused when it is encoded.
    if not isinstance(own, Mapping) or any(name in own for name in carried):
        return message
    return replace(message, headers={**carried, **own})


def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer(_NAME)


def _kinds() -> type[SpanKind]:
    from opentelemetry.trace import SpanKind

    return SpanKind
