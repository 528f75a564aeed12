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
from postbus.server import metric_names
from postbus.server.connection import Connection

# The shortest time between two queries of streams and consumers, however often Prometheus scrapes. With thousands of them,
# queries take at most a fifth of the time.
_SECONDS: Final = 5.0
_LOOKS_APART: Final = 4.0
# A scrape waits this long for current figures, and then takes the last ones. Prometheus itself waits 10 s.
_PATIENCE: Final = 2.0
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0)

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
        self._requests = _counter(metric_names.REQUESTS, target)
        ((name, text),) = metric_names.DURATIONS.texts.items()
        labels = metric_names.DURATIONS.labels
        self._durations = Histogram(name, text, labels, buckets=_BUCKETS, registry=target)
        self._published = _counter(metric_names.PUBLISHED, target)
        self._received = _counter(metric_names.RECEIVED, target)
        self._webhooks = _counter(metric_names.WEBHOOKS, target)
        self._settled = {
            name: Counter(name, text, metric_names.SETTLED.labels, registry=target)
            for name, text in metric_names.SETTLED.texts.items()
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
            child = self._settled[f"postbus_messages_{outcome}"].labels(stream, consumer)
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
                ready, _ = _gauges(metric_names.SERVER)
                ready.add_metric([], 0)
                return [ready]
        ready, age = _gauges(metric_names.SERVER)
        ready.add_metric([], 1)
        age.add_metric([], time.monotonic() - self._gauges_of)
        return [ready, age, *self._gauges]

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        started = time.monotonic()
        self._gauges = await _look(self._connection.bus)
        self._gauges_of = started
        ended = time.monotonic()
        self._gauges_until = max(started + _SECONDS, ended + _LOOKS_APART * (ended - started))


def _counter(metrics: metric_names.MetricGroup, registry: CollectorRegistry | None) -> Counter:
    ((name, text),) = metrics.texts.items()
    return Counter(name, text, metrics.labels, registry=registry)


def _gauges(metrics: metric_names.MetricGroup) -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(name, text, labels=metrics.labels) for name, text in metrics.texts.items()]


class _Collected:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


async def _look(bus: postbus.AsyncBus) -> list[Metric]:
    """Query streams and consumers, in pages: looks at about a thousand messages of each, however many they have."""
    stream_gauges = _gauges(metric_names.STREAM)
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
    gauges = _gauges(metric_names.PUSH)
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
    gauges = _gauges(metric_names.SOURCE)
    (states,) = _gauges(metric_names.SOURCE_STATES)
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
    gauges = _gauges(metric_names.PIPELINE)
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
    gauges = _gauges(metric_names.CONSUMER)
    ((name, text),) = metric_names.TIMED_OUT.texts.items()
    timed_out = CounterMetricFamily(name, text, labels=metric_names.TIMED_OUT.labels)
    (levels,) = _gauges(metric_names.PRIORITIES)
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
