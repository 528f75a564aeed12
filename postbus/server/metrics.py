"""Metrics for Prometheus: requests to this server, and the progress of streams and consumers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

import postbus
from postbus.model.errors import Error
from postbus.server.connection import Connection

# The shortest time between two queries of streams and consumers, however often Prometheus scrapes. With thousands of them,
# queries take at most a fifth of the time.
_SECONDS: Final = 5.0
_LOOKS_APART: Final = 4.0
# A scrape waits this long for current figures, and then takes the last ones. Prometheus itself waits 10 s.
_PATIENCE: Final = 2.0
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0)

_STREAM: Final = {
    "postbus_stream_messages": "Messages that the stream holds: exact up to 1,000, an estimate beyond.",
    "postbus_stream_size_bytes": "What the stream's log takes on disk.",
    "postbus_stream_segments": "Segments of the stream's log.",
    "postbus_stream_last_seq": "The highest seq given out.",
    "postbus_stream_scheduled_messages": "Messages that wait for their time, outside the log, at most 10,000.",
}
_CONSUMER: Final = {
    "postbus_consumer_backlog": "Messages that are not finished: not delivered, in flight, waiting or parked.",
    "postbus_consumer_lag_messages": "Messages that are left to be delivered, as exact as the backlog.",
    "postbus_consumer_in_flight_messages": "Messages that are delivered, but not yet acked or nacked.",
    "postbus_consumer_waiting_messages": "Messages that failed or are parked behind their key, at most 10,000.",
    "postbus_consumer_dead_letters": "Dead letters, at most 10,000.",
    "postbus_consumer_oldest_unread_seconds": "The age of the oldest message that was not yet delivered.",
    "postbus_consumer_paused": "1 when the consumer is paused.",
}

# What requests to this server did. What workers do over Postgres is not among it.
_SETTLED: Final = {
    "acked": "Messages acked by requests to this server.",
    "failed": "Deliveries nacked by requests to this server, before max_deliver or not.",
    "terminated": "Messages made dead letters by requests to this server.",
}

_PUSH: Final = {
    "postbus_push_resting": "1 while the endpoint of the consumer rests after failures.",
    "postbus_push_paused": "1 while nothing is sent to the endpoint of the consumer until somebody resumes it.",
    "postbus_push_failing_seconds": "Since when nothing has succeeded, in seconds; 0 if the last request succeeded.",
}

_PIPELINE: Final = {
    "postbus_pipeline_running": "1 while the pipeline is running.",
    "postbus_pipeline_failed": "1 if its last run failed or disappeared.",
    "postbus_pipeline_messages": "Messages that the pipeline has processed in all its runs.",
    "postbus_pipeline_messages_per_second": "The rate of its last run.",
    "postbus_pipeline_lag_messages": "About how many messages are left; 0 for a pipeline that ends by itself.",
    "postbus_pipeline_aside": "Rows that it could not publish and has put into another stream, in all its runs.",
    "postbus_pipeline_late": "Rows that came too late for a watermark and were dropped, in all its runs.",
}

_SOURCE: Final = {
    "postbus_source_streaming": "1 while the source is read and nothing is wrong with it.",
    "postbus_source_lag_bytes": "How much of the source's log has not been looked at.",
    "postbus_source_lag_seconds": "For how long the oldest change has waited that is not published.",
    "postbus_source_wal_held_bytes": "How much log the source keeps for its slot.",
    "postbus_source_changes": "Messages that the source has published.",
    "postbus_source_changes_per_second": "How many it published of late.",
}

Settled = Literal["acked", "failed", "terminated"]
WebhookOutcome = Literal["published", "duplicate", "handshake", "refused", "unavailable"]


class Metrics:
    """The metrics of this process or, with several processes, of all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # With PROMETHEUS_MULTIPROC_DIR, each process keeps its values in files, and any process can sum them up.
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        registry = self._registry = CollectorRegistry()
        if self._shared:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        target = None if self._shared else registry
        self._requests = Counter("postbus_http_requests", "Requests.", ["method", "route", "status"], registry=target)
        self._durations = Histogram(
            "postbus_http_request_duration_seconds",
            "How long requests took, waiting for messages included.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=target,
        )
        self._published = Counter("postbus_messages_published", "Messages published.", ["stream"], registry=target)
        self._received = Counter(
            "postbus_messages_received", "Messages delivered.", ["stream", "consumer"], registry=target
        )
        self._webhooks = Counter(
            "postbus_webhooks_received", "Requests to webhook sources.", ["source", "outcome"], registry=target
        )
        self._settled = {
            name: Counter(f"postbus_messages_{name}", text, ["stream", "consumer"], registry=target)
            for name, text in _SETTLED.items()
        }
        # Finding a child by its labels takes as long as counting.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._of_streams: dict[str, Counter] = {}
        self._of_consumers: dict[tuple[str, str, str], Counter] = {}
        self._gauges: list[Metric] = []
        self._gauges_until = 0.0
        self._gauges_of = 0.0
        self._looking: asyncio.Task[None] | None = None

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        children = self._children.get((method, route, status))
        if children is None:
            children = self._requests.labels(method, route, str(status)), self._durations.labels(method, route)
            self._children[method, route, status] = children
        requests, durations = children
        requests.inc()
        durations.observe(seconds)

    def count_published(self, stream: str, count: int) -> None:
        child = self._of_streams.get(stream)
        if child is None:
            child = self._of_streams[stream] = self._published.labels(stream)
        child.inc(count)

    def count_received(self, stream: str, consumer: str, count: int) -> None:
        self._received.labels(stream, consumer).inc(count)

    def count_settled(self, outcome: Settled, stream: str, consumer: str, count: int) -> None:
        if not count:
            return
        child = self._of_consumers.get((outcome, stream, consumer))
        if child is None:
            child = self._settled[outcome].labels(stream, consumer)
            self._of_consumers[outcome, stream, consumer] = child
        child.inc(count)

    def count_webhook(self, source: str, outcome: WebhookOutcome) -> None:
        self._webhooks.labels(source, outcome).inc()

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """The page for Prometheus, and its content type."""
        try:
            encoder, content_type = choose_encoder(accept)
        except (TypeError, ValueError):
            # The library fails on invalid versions.
            encoder, content_type = choose_encoder("")
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*self._registry.collect(), *await self._standing()]))
        return encoder(registry), content_type

    async def _standing(self) -> list[Metric]:
        if time.monotonic() >= self._gauges_until and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())
            # Nothing may be awaiting the task.
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        if self._looking is not None:
            try:
                # Shielded, so that the query continues after this scrape has ended.
                async with asyncio.timeout(_PATIENCE if self._gauges else None):
                    await asyncio.shield(self._looking)
            except TimeoutError:
                pass
            except Error:
                return [GaugeMetricFamily("postbus_ready", "1 when Postgres can be used.", 0)]
        age = GaugeMetricFamily("postbus_figures_age_seconds", "How old the figures of streams and consumers are.")
        age.add_metric([], time.monotonic() - self._gauges_of)
        return [GaugeMetricFamily("postbus_ready", "1 when Postgres can be used.", 1), age, *self._gauges]

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        started = time.monotonic()
        self._gauges = await _look(self._connection.bus)
        self._gauges_of = started
        ended = time.monotonic()
        self._gauges_until = max(started + _SECONDS, ended + _LOOKS_APART * (ended - started))


class _Collected:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


async def _look(bus: postbus.AsyncBus) -> list[Metric]:
    """Query streams and consumers, in pages: looks at about a thousand messages of each, however many they have."""
    stream_gauges = [GaugeMetricFamily(name, text, labels=["stream"]) for name, text in _STREAM.items()]
    for stream in await bus.list_streams():
        values = (stream.message_estimate, stream.bytes, stream.segment_count, stream.last_seq, stream.scheduled)
        for gauge, value in zip(stream_gauges, values, strict=True):
            gauge.add_metric([stream.name], value)
    others = [
        *await _look_at_consumers(bus),
        *await _look_at_pushes(bus),
        *await _look_at_pipelines(bus),
        *await _look_at_sources(bus),
    ]
    return [*stream_gauges, *others]


async def _look_at_pushes(bus: postbus.AsyncBus) -> list[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["stream", "consumer"]) for name, text in _PUSH.items()]
    now = datetime.now(UTC)
    for endpoint in await bus.list_pushes():
        failing_since = endpoint.first_failure_at
        values = (
            float(endpoint.state == "resting"),
            float(endpoint.state == "paused"),
            0.0 if failing_since is None else max(0.0, (now - failing_since).total_seconds()),
        )
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([endpoint.stream, endpoint.consumer], value)
    return list(gauges)


async def _look_at_sources(bus: postbus.AsyncBus) -> list[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["source", "stream"]) for name, text in _SOURCE.items()]
    states = GaugeMetricFamily("postbus_source_state", "1 for the state of the source.", labels=["source", "state"])
    for source in await bus.sources.list_all():
        values = (
            float(source.state in ("streaming", "backfilling")),
            source.lag_bytes or 0,
            source.lag_seconds or 0.0,
            source.wal_held_bytes or 0,
            source.change_count,
            source.changes_per_second or 0.0,
        )
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([source.name, source.stream], value)
        states.add_metric([source.name, source.state], 1)
    return [*gauges, states]


async def _look_at_pipelines(bus: postbus.AsyncBus) -> list[Metric]:
    labels = ["pipeline", "kind", "stream"]
    gauges = [GaugeMetricFamily(name, text, labels=labels) for name, text in _PIPELINE.items()]
    for pipeline in await bus.list_pipelines():
        values = (
            float(pipeline.state == "running"),
            float(pipeline.state in ("failed", "lost")),
            pipeline.message_count,
            pipeline.rate,
            pipeline.lag_estimate or 0,
            pipeline.aside_count,
            pipeline.late_count,
        )
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([pipeline.name, pipeline.kind, pipeline.stream], value)
    return list(gauges)


async def _look_at_consumers(bus: postbus.AsyncBus) -> list[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["stream", "consumer"]) for name, text in _CONSUMER.items()]
    text = "Deliveries whose lease expired, whoever had received them, since the last seek."
    timed_out = CounterMetricFamily("postbus_consumer_timed_out", text, labels=["stream", "consumer"])
    levels = GaugeMetricFamily(
        "postbus_consumer_messages_by_priority",
        "Messages that are not delivered, wait or are parked, by priority, where there are several.",
        labels=["stream", "consumer", "priority"],
    )
    now = datetime.now(UTC)
    for consumer in await bus.consumer_overview():
        unread_at = consumer.oldest_unread_at
        values = (
            consumer.backlog,
            consumer.lag_estimate,
            consumer.in_flight,
            consumer.waiting,
            consumer.dead,
            0.0 if unread_at is None else max(0.0, (now - unread_at).total_seconds()),
            float(consumer.paused),
        )
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([consumer.stream, consumer.name], value)
        timed_out.add_metric([consumer.stream, consumer.name], consumer.timed_out)
        if len(consumer.by_priority) > 1:
            for priority, count in consumer.by_priority.items():
                levels.add_metric([consumer.stream, consumer.name, str(priority)], count)
    return [*gauges, timed_out, levels]
