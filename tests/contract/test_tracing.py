"""Traces go from a publish to whoever handles the message, in programs that use OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import postbus
from tests.waiting import until

pytestmark = pytest.mark.newest_server


class _Spans:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Spans]:
    """Where spans go, for one test: OpenTelemetry itself has one place for all time."""
    found = _Spans()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", found.provider)
    yield found
    found.provider.shutdown()


async def test_a_handler_works_in_the_trace_of_the_publish(bus: Any, stream: str, spans: _Spans) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=1)
    seen: list[int] = []

    def handle(delivery: postbus.Delivery) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)
        raise ValueError("no")

    with spans.tracer.start_as_current_span("checkout") as checkout:
        seq = await bus.publish(stream, key="orders.1", data=1)
    await billing.run(handle, stop_when_empty=True, install_signal_handlers=False)

    trace_id = checkout.get_span_context().trace_id
    # The last to end: over HTTP the server has a span for it, too.
    published, processed = spans.named(f"publish {stream}")[-1], spans.one(f"process {stream}")
    assert seen == [trace_id]
    assert {published.context.trace_id, processed.context.trace_id} == {trace_id}
    assert (published.kind, processed.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert published.parent is not None
    assert published.parent.span_id == checkout.get_span_context().span_id
    assert processed.attributes is not None
    assert processed.attributes["messaging.message.id"] == str(seq)
    assert processed.attributes["messaging.postbus.key"] == "orders.1"
    assert processed.status.status_code is trace.StatusCode.ERROR


async def test_a_message_that_has_a_trace_keeps_it(bus: Any, stream: str, spans: _Spans) -> None:
    own = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    messages = [postbus.Message(data=1, headers=own), postbus.Message(data=2, headers={"a": "b"})]

    await bus.publish_many(stream, messages)

    kept, given = [message.headers for message in await bus.read(stream)]
    assert kept == own
    assert (given["a"], sorted(given)) == ("b", ["a", "traceparent"])
    assert messages[1].headers == {"a": "b"}


async def test_without_opentelemetry_nothing_is_added(bus: Any, stream: str) -> None:
    await bus.publish(stream, data=1)

    assert [message.headers for message in await bus.read(stream)] == [None]


def test_a_request_is_a_span_in_the_trace_of_its_sender(api: Any, name: str, spans: _Spans) -> None:
    with postbus.connect(api.url) as bus:
        bus.create_stream(name)
        with spans.tracer.start_as_current_span("checkout") as checkout:
            bus.publish(name, data=1)
        with pytest.raises(postbus.NotFound):
            bus.publish("nobody-made-this", data=1)

    trace_id = checkout.get_span_context().trace_id
    # A span ends after its response was sent.
    route = "POST /api/streams/{stream}/messages"
    until(lambda: len(spans.named(route)) == 2, "both requests have a span")
    served, refused = spans.named(route)
    assert (served.context.trace_id, served.kind) == (trace_id, trace.SpanKind.SERVER)
    assert served.attributes is not None
    assert refused.attributes is not None
    assert served.attributes["http.response.status_code"] == 200
    assert refused.attributes["http.response.status_code"] == 404


def test_opentelemetry_is_not_imported_for_those_who_do_not_use_it(url: str) -> None:
    script = (
        "import postbus, sys\n"
        f"with postbus.connect({url!r}) as bus: bus.list_streams()\n"
        "print('opentelemetry' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.strip() == "False"
