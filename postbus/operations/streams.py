"""Streams: create, alter, drop, list, purge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from postbus.codec import answers, parameters, rows, settings
from postbus.model.archive import ArchiveInfo
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.settings import StreamChanges, StreamSettings
from postbus.model.stream import HorizonHolder, StreamInfo
from postbus.operations.call import Call, Http, Route, Sql, count, first, nothing

LIST: Final = Route("GET", "/api/streams", "manage")
CREATE: Final = Route("POST", "/api/streams", "manage")
INFO: Final = Route("GET", "/api/streams/{stream}", "manage", also=("publish", "consume"))
ALTER: Final = Route("PATCH", "/api/streams/{stream}", "manage")
DROP: Final = Route("DELETE", "/api/streams/{stream}", "manage")
PURGE: Final = Route("POST", "/api/streams/{stream}/purge", "manage")
RATES: Final = Route("GET", "/api/streams/{stream}/rates", "manage", also=("publish", "consume"))
STATS: Final = Route("GET", "/api/streams/{stream}/stats", "manage")
OVERVIEW: Final = Route("GET", "/api/overview", "manage")
ALL_CONSUMERS: Final = Route("GET", "/api/consumers", "manage")
CONSUMER_OVERVIEW: Final = Route("GET", "/api/streams/{stream}/overview", "manage")
PIPELINES: Final = Route("GET", "/api/pipelines", "manage")
ARCHIVE: Final = Route("GET", "/api/streams/{stream}/archive", "manage", also=("consume",))
DOCTOR: Final = Route("GET", "/api/doctor", "manage", on_all_streams=True)
SWEEP: Final = Route("POST", "/api/sweep", "manage")
MAINTAIN: Final = Route("POST", "/api/maintain", "manage")


def create(stream: str, given: Mapping[str, Any], *, exist_ok: bool) -> Call[None]:
    text, values = settings.sql_arguments(StreamSettings, given, first=3)
    fields = settings.http_fields(StreamSettings, given)
    return Call(
        Sql(f"select postbus.create_stream($1, exist_ok => $2{text})", (stream, exist_ok, *values), nothing),
        Http(CREATE, (), nothing, body={"name": stream, **fields, "exist_ok": exist_ok or None}),
        repeatable=exist_ok,
    )


def alter(stream: str, given: Mapping[str, Any], unset: Sequence[str]) -> Call[None]:
    text, values = settings.sql_arguments(StreamChanges, given, first=3)
    return Call(
        Sql(
            f"select postbus.alter_stream($1, unset => $2{text})",
            (stream, parameters.text_array(unset), *values),
            nothing,
            # Another number of partitions begins with a new segment.
            afterwards=(lambda: maintain(stream)) if "partitions" in given else None,
        ),
        Http(
            ALTER,
            (stream,),
            nothing,
            body=settings.http_fields(StreamChanges, given),
            nulls=settings.null_fields(StreamChanges, unset),
        ),
        repeatable=True,
    )


def drop(stream: str) -> Call[None]:
    return Call(Sql("select postbus.drop_stream($1)", (stream,), nothing), Http(DROP, (stream,), nothing))


def info(stream: str) -> Call[StreamInfo]:
    return Call(
        Sql(
            f"select {rows.STREAM_INFO} from postbus.stream_info($1) as i",  # noqa: S608
            (stream,),
            lambda found: rows.stream_info(found[0]),
        ),
        Http(INFO, (stream,), lambda answer: answers.stream_info(answer.data)),
        repeatable=True,
    )


def list_all() -> Call[list[StreamInfo]]:
    return Call(
        Sql(
            f"select {rows.STREAM_INFO} from postbus.list_streams($1) as i",  # noqa: S608
            ("",),
            lambda found: [rows.stream_info(row) for row in found],
            next_page=lambda page: (page[-1].name,) if page else None,
        ),
        Http(LIST, (), lambda answer: [answers.stream_info(each) for each in answer.data]),
        repeatable=True,
    )


def overview(*, sizes: bool) -> Call[list[StreamOverview]]:
    return Call(
        Sql(
            "select o.* from postbus.overview($1, sizes => $2) as o",
            ("", sizes),
            lambda found: [rows.stream_overview(row) for row in found],
            next_page=lambda page: (page[-1].name, sizes) if page else None,
        ),
        Http(
            OVERVIEW,
            (),
            lambda answer: [answers.stream_overview(each) for each in answer.data],
            query={"sizes": "true" if sizes else None},
        ),
        repeatable=True,
    )


def consumer_overview(stream: str | None) -> Call[list[ConsumerOverview]]:
    route, names = (ALL_CONSUMERS, ()) if stream is None else (CONSUMER_OVERVIEW, (stream,))
    return Call(
        Sql(
            "select o.* from postbus.consumer_overview($1, $2, $3) as o",
            (stream, "", ""),
            lambda found: [rows.consumer_overview(row) for row in found],
            next_page=lambda page: (stream, page[-1].stream, page[-1].name) if page else None,
        ),
        Http(route, names, lambda answer: [answers.consumer_overview(each) for each in answer.data]),
        repeatable=True,
    )


def purge(stream: str, *, before_seq: int | None, before_time: datetime | None, everything: bool) -> Call[int]:
    return Call(
        Sql(
            "select postbus.purge($1, before_seq => $2, before_time => $3, everything => $4)",
            (stream, before_seq, before_time, everything),
            first,
        ),
        Http(
            PURGE,
            (stream,),
            lambda answer: int(answer.data["start_seq"]),
            body={"before_seq": before_seq, "before_time": before_time, "everything": everything or None},
        ),
    )


def publish_rate(stream: str) -> Call[float]:
    return Call(
        Sql("select postbus.publish_rate($1)", (stream,), lambda found: float(first(found))),
        Http(STATS, (stream,), lambda answer: float(answer.data["publish_rate_estimate"])),
        repeatable=True,
    )


def publish_counts(stream: str, span: Duration, buckets: int) -> Call[list[int]]:
    return Call(
        Sql(
            "select postbus.publish_counts($1, $2, $3)",
            (stream, as_timedelta(span), buckets),
            lambda found: list(first(found)),
        ),
        Http(
            RATES,
            (stream,),
            lambda answer: list(answer.data["counts"]),
            query={"span_ms": as_milliseconds(span), "buckets": buckets},
        ),
        repeatable=True,
    )


def horizon(stream: str) -> Call[int]:
    return Call(
        Sql("select postbus.horizon($1)", (stream,), first),
        Http(STATS, (stream,), lambda answer: int(answer.data["horizon_seq"])),
        repeatable=True,
    )


def horizon_holders(stream: str) -> Call[list[HorizonHolder]]:
    return Call(
        Sql(
            "select h.* from postbus.horizon_holders($1) as h",
            (stream,),
            lambda found: [rows.horizon_holder(row) for row in found],
        ),
        Http(STATS, (stream,), lambda answer: [answers.horizon_holder(each) for each in answer.data["holders"]]),
        repeatable=True,
    )


def maintain(stream: str | None) -> Call[int]:
    return Call(
        Sql("select postbus.maintain($1)", (stream,), first, next_page=lambda steps: (stream,) if steps else None),
        Http(MAINTAIN, (), count, body={"stream": stream}),
        repeatable=True,
    )


def sweep(stream: str | None) -> Call[int]:
    return Call(
        Sql("select postbus.sweep($1)", (stream,), lambda found: int(first(found))),
        Http(SWEEP, (), count, body={"stream": stream}),
    )


def list_pipelines() -> Call[list[PipelineInfo]]:
    return Call(
        Sql(
            "select p.* from postbus.list_pipelines() as p",
            (),
            lambda found: [rows.pipeline_info(row) for row in found],
        ),
        Http(PIPELINES, (), lambda answer: [answers.pipeline_info(each) for each in answer.data]),
        repeatable=True,
    )


def archive_info(stream: str) -> Call[ArchiveInfo | None]:
    return Call(
        Sql(
            "select a.* from postbus_data.archive_state($1) as a",
            (stream,),
            lambda found: rows.archive_info(found[0]) if found else None,
        ),
        Http(
            ARCHIVE,
            (stream,),
            lambda answer: None if answer.data is None else answers.archive_info(answer.data),
        ),
        repeatable=True,
    )
