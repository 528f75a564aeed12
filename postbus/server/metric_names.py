"""Every metric of the server: its name, kind and labels, and what it says. metrics.py measures them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics with the same labels.

    Attributes:
        kind: What Prometheus calls their type. It adds `_total` to the name of a counter.
        labels: What tells their series apart.
        texts: What each says, by name.
    """

    kind: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    texts: Mapping[str, str]


STREAM: Final = MetricGroup(
    "gauge",
    ("stream",),
    {
        "postbus_stream_messages": "Messages that the stream holds: exact up to 1,000, an estimate beyond.",
        "postbus_stream_size_bytes": "What the stream's log takes on disk.",
        "postbus_stream_segments": "Segments of the stream's log.",
        "postbus_stream_last_seq": "The highest seq given out.",
        "postbus_stream_scheduled_messages": "Messages that wait for their time, outside the log, at most 10,000.",
    },
)
CONSUMER: Final = MetricGroup(
    "gauge",
    ("stream", "consumer"),
    {
        "postbus_consumer_backlog": "Messages that are not finished: not delivered, in flight, waiting or parked.",
        "postbus_consumer_lag_messages": "Messages that are left to be delivered, as exact as the backlog.",
        "postbus_consumer_in_flight_messages": "Messages that are delivered, but not yet acked or nacked.",
        "postbus_consumer_waiting_messages": "Messages that failed or are parked behind their key, at most 10,000.",
        "postbus_consumer_dead_letters": "Dead letters, at most 10,000.",
        "postbus_consumer_oldest_unread_seconds": "The age of the oldest message that was not yet delivered.",
        "postbus_consumer_paused": "1 when the consumer is paused.",
    },
)
# What requests to this server did. What workers do over Postgres is not among it.
SETTLED: Final = MetricGroup(
    "counter",
    ("stream", "consumer"),
    {
        "postbus_messages_acked": "Messages acked by requests to this server.",
        "postbus_messages_failed": "Deliveries nacked by requests to this server, before max_deliver or not.",
        "postbus_messages_terminated": "Messages made dead letters by requests to this server.",
    },
)
PUSH: Final = MetricGroup(
    "gauge",
    ("stream", "consumer"),
    {
        "postbus_push_resting": "1 while the endpoint of the consumer rests after failures.",
        "postbus_push_paused": "1 while nothing is sent to the endpoint of the consumer until somebody resumes it.",
        "postbus_push_failing_seconds": "Since when nothing has succeeded, in seconds; 0 if the last request succeeded.",
    },
)
PIPELINE: Final = MetricGroup(
    "gauge",
    ("pipeline", "kind", "stream"),
    {
        "postbus_pipeline_running": "1 while the pipeline is running.",
        "postbus_pipeline_failed": "1 if its last run failed or disappeared.",
        "postbus_pipeline_messages": "Messages that the pipeline has processed in all its runs.",
        "postbus_pipeline_messages_per_second": "The rate of its last run.",
        "postbus_pipeline_lag_messages": "About how many messages are left; 0 for a pipeline that ends by itself.",
        "postbus_pipeline_aside": "Rows that it could not publish and has put into another stream, in all its runs.",
        "postbus_pipeline_late": "Rows that came too late for a watermark and were dropped, in all its runs.",
    },
)
SOURCE: Final = MetricGroup(
    "gauge",
    ("source", "stream"),
    {
        "postbus_source_streaming": "1 while the source is read and nothing is wrong with it.",
        "postbus_source_lag_bytes": "How much of the source's log has not been looked at.",
        "postbus_source_lag_seconds": "For how long the oldest change has waited that is not published.",
        "postbus_source_wal_held_bytes": "How much log the source keeps for its slot.",
        "postbus_source_changes": "Messages that the source has published.",
        "postbus_source_changes_per_second": "How many it published of late.",
    },
)
SERVER: Final = MetricGroup(
    "gauge",
    (),
    {
        "postbus_ready": "1 when Postgres can be used.",
        "postbus_figures_age_seconds": "How old the figures of streams and consumers are.",
    },
)
REQUESTS: Final = MetricGroup("counter", ("method", "route", "status"), {"postbus_http_requests": "Requests."})
DURATIONS: Final = MetricGroup(
    "histogram",
    ("method", "route"),
    {"postbus_http_request_duration_seconds": "How long requests took, waiting for messages included."},
)
PUBLISHED: Final = MetricGroup(
    "counter", ("stream",), {"postbus_messages_published": "Messages published by requests to this server."}
)
RECEIVED: Final = MetricGroup(
    "counter", ("stream", "consumer"), {"postbus_messages_received": "Messages delivered by requests to this server."}
)
WEBHOOKS: Final = MetricGroup(
    "counter", ("source", "outcome"), {"postbus_webhooks_received": "Requests to webhook sources."}
)
TIMED_OUT: Final = MetricGroup(
    "counter",
    ("stream", "consumer"),
    {"postbus_consumer_timed_out": "Deliveries whose lease expired, whoever had received them, since the last seek."},
)
PRIORITIES: Final = MetricGroup(
    "gauge",
    ("stream", "consumer", "priority"),
    {
        "postbus_consumer_messages_by_priority": "Messages that are not delivered, wait or are parked, by priority, where there "
        "are several."
    },
)
SOURCE_STATES: Final = MetricGroup(
    "gauge", ("source", "state"), {"postbus_source_state": "1 for the state of the source."}
)
ALL: Final = (
    *(SERVER, STREAM, CONSUMER, TIMED_OUT, PRIORITIES, REQUESTS, DURATIONS, PUBLISHED, RECEIVED, SETTLED),
    *(PUSH, WEBHOOKS, SOURCE, SOURCE_STATES, PIPELINE),
)
