"""A report as tables: one file each, by pyarrow, because they are small; columns of the same name mean the same."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from postbus.model.errors import InvalidInput
from postbus.pipelines.report.facts import Report, StreamFacts
from postbus.spark.archive import filesystem

_Row = dict[str, Any]

# The columns of each table: s is text, n a whole number, x a fraction, t a time.
_COLUMNS: Final = {
    "streams": "stream:s data_type:s messages:n bytes:n key_count:n in_log:n archived:n log_bytes:n from_time:t to_time:t",
    "throughput": "stream:s from_time:t seconds:x messages:n bytes:n",
    "keys": "stream:s key:s messages:n bytes:n share:x",
    "consumers": "stream:s consumer:s lag:n in_flight:n waiting:n dead:n missed:n has_history:b",
    "latency": "stream:s consumer:s acked:n p50_seconds:x p95_seconds:x p99_seconds:x slowest_seconds:x waited_seconds:x "
    "worked_seconds:x unknown:n",
    "deliveries": "stream:s consumer:s from_time:t seconds:x acked:n failed:n dead:n redelivered:n lag:n p50_seconds:x "
    "p95_seconds:x p99_seconds:x",
    "failures": "stream:s consumer:s reason:s messages:n last_at:t",
    "dead_letters": "stream:s consumer:s reason:s messages:n last_at:t",
    "forecast": "stream:s days:n messages:n messages_low:n messages_high:n bytes:n bytes_low:n bytes_high:n archive_bytes:n",
}


def tables_of(report: Report) -> dict[str, list[_Row]]:
    """The rows of each table."""
    return {name: [row for stream in report.streams for row in _ROWS[name](stream)] for name in _COLUMNS}


def make_folder(folder: str) -> None:
    """Make the folder of the tables.

    Raises:
        InvalidInput: It cannot be.
    """
    try:
        system, path = filesystem(_absolute(folder))
        system.create_dir(path, recursive=True)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"tables cannot be written to {folder}: {' '.join(str(error).split())}") from error


def write_tables(report: Report, folder: str, format: str) -> None:
    """Write each table to a file that is named after it; one that is there is replaced."""
    import pyarrow

    system, path = filesystem(_absolute(folder))
    kinds = {
        "s": pyarrow.string(),
        "n": pyarrow.int64(),
        "x": pyarrow.float64(),
        "b": pyarrow.bool_(),
        "t": pyarrow.timestamp("us", "UTC"),
    }
    for name, rows in tables_of(report).items():
        columns = [column.split(":") for column in _COLUMNS[name].split()]
        schema = pyarrow.schema([(column, kinds[kind]) for column, kind in columns])
        with system.open_output_stream(f"{path}/{name}.{format}") as out:
            out.write(_written(pyarrow.Table.from_pylist(rows, schema=schema), format))


def _written(table: Any, format: str) -> bytes:
    from pyarrow import csv, parquet

    if format == "json":
        return b"".join(orjson.dumps(row) + b"\n" for row in table.to_pylist())
    out = io.BytesIO()
    write: Callable[[Any, Any], None] = csv.write_csv if format == "csv" else parquet.write_table
    write(table, out)
    return out.getvalue()


def _absolute(folder: str) -> str:
    return folder if ":" in folder else str(Path(folder).expanduser().absolute())


def _streams(stream: StreamFacts) -> Iterator[_Row]:
    starts = stream.buckets.starts if stream.buckets is not None else [None]
    yield {
        "stream": stream.info.name,
        "data_type": stream.info.data_type,
        "messages": sum(stream.traffic.messages),
        "bytes": sum(stream.traffic.bytes),
        "key_count": stream.traffic.key_count,
        "in_log": sum(stream.traffic.in_log),
        "archived": stream.archived,
        "log_bytes": stream.info.bytes,
        "from_time": starts[0],
        "to_time": starts[-1],
    }


def _throughput(stream: StreamFacts) -> Iterator[_Row]:
    if stream.buckets is None:
        return
    counts = zip(stream.buckets.starts, stream.traffic.messages, stream.traffic.bytes, strict=False)
    for start, messages, size in counts:
        yield {
            "stream": stream.info.name,
            "from_time": start,
            "seconds": stream.buckets.seconds,
            "messages": messages,
            "bytes": size,
        }


def _keys(stream: StreamFacts) -> Iterator[_Row]:
    total = sum(stream.traffic.messages)
    for key in stream.traffic.keys:
        share = key.messages / total
        yield {"stream": stream.info.name, "key": key.key, "messages": key.messages, "bytes": key.bytes, "share": share}


def _consumers(stream: StreamFacts) -> Iterator[_Row]:
    for each in stream.consumers:
        yield {
            "stream": stream.info.name,
            "consumer": each.name,
            "lag": each.lag,
            "in_flight": each.in_flight,
            "waiting": each.waiting,
            "dead": each.dead,
            "missed": each.missed,
            "has_history": each.deliveries is not None,
        }


def _latency(stream: StreamFacts) -> Iterator[_Row]:
    for each in stream.consumers:
        if (done := each.deliveries) is not None:
            yield {
                "stream": stream.info.name,
                "consumer": each.name,
                "acked": sum(done.acked),
                "p50_seconds": done.latency.p50,
                "p95_seconds": done.latency.p95,
                "p99_seconds": done.latency.p99,
                "slowest_seconds": done.slowest,
                "waited_seconds": done.waited,
                "worked_seconds": done.worked,
                "unknown": done.unknown,
            }


def _deliveries(stream: StreamFacts) -> Iterator[_Row]:
    for each in stream.consumers:
        if (done := each.deliveries) is None or stream.buckets is None:
            continue
        for place in range(stream.buckets.count):
            yield {
                "stream": stream.info.name,
                "consumer": each.name,
                "from_time": stream.buckets.starts[place],
                "seconds": stream.buckets.seconds,
                "acked": done.acked[place],
                "failed": done.failed[place],
                "dead": done.dead[place],
                "redelivered": done.redelivered[place],
                "lag": done.lag[place],
                "p50_seconds": done.latencies[place].p50,
                "p95_seconds": done.latencies[place].p95,
                "p99_seconds": done.latencies[place].p99,
            }


def _failures(stream: StreamFacts) -> Iterator[_Row]:
    for each in stream.consumers:
        for one in each.deliveries.failures if each.deliveries is not None else ():
            yield _reason(stream, one)


def _dead_letters(stream: StreamFacts) -> Iterator[_Row]:
    for one in stream.dead:
        yield _reason(stream, one)


def _reason(stream: StreamFacts, one: Any) -> _Row:
    return {
        "stream": stream.info.name,
        "consumer": one.consumer,
        "reason": one.reason,
        "messages": one.count,
        "last_at": one.last_at,
    }


def _forecast(stream: StreamFacts) -> Iterator[_Row]:
    for point in stream.forecast.points if stream.forecast is not None else ():
        yield {"stream": stream.info.name, **{name: getattr(point, name) for name in point.__dataclass_fields__}}


_ROWS: Final[dict[str, Callable[[StreamFacts], Iterator[_Row]]]] = {
    "streams": _streams,
    "throughput": _throughput,
    "keys": _keys,
    "consumers": _consumers,
    "latency": _latency,
    "deliveries": _deliveries,
    "failures": _failures,
    "dead_letters": _dead_letters,
    "forecast": _forecast,
}
