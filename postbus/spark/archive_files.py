"""Reads messages from files of an archive, in order of seq, a few megabytes at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from postbus.db.arrow import BATCH_BYTES, MessageFilter
from postbus.model.errors import NotFound
from postbus.spark.archive import filesystem

_MOST_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class LakeRange:
    """Messages with after_seq < seq <= to_seq in files of an archive, of all partitions or one; ahead as in `db.arrow.Range`."""

    root: str
    # Each with its first seq, and in its order.
    files: tuple[tuple[int, str], ...]
    after_seq: int
    to_seq: int
    partition: int | None = None
    ahead: tuple[tuple[int, int], ...] = ()


def read_files(wanted: LakeRange, columns: Sequence[str], filter: MessageFilter) -> Iterator[Any]:
    """The messages of a range as record batches, in order of seq; a column that a file lacks is null.

    Raises:
        NotFound: A file is gone.
    """
    stored = ["data" if name == "size" else name for name in columns]
    needed = list(dict.fromkeys([*stored, "seq", *_filtered(wanted, filter)]))
    streams = [(first_seq, _batches(wanted, path, needed, filter)) for first_seq, path in wanted.files]
    for batch in merged(streams):
        yield _with_size(batch, columns) if "size" in columns else batch.select(list(columns))


def _with_size(batch: Any, columns: Sequence[str]) -> Any:
    import pyarrow
    import pyarrow.compute as pc

    arrays = [pc.binary_length(batch.column("data")) if name == "size" else batch.column(name) for name in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _filtered(wanted: LakeRange, filter: MessageFilter) -> list[str]:
    """The columns that a filter looks at."""
    names = []
    if wanted.partition is not None or wanted.ahead:
        names.append("partition")
    if filter.key is not None or filter.key_prefix is not None or filter.key_regex is not None:
        names.append("key")
    if filter.from_time is not None or filter.to_time is not None:
        names.append("published_at")
    return names


def _batches(wanted: LakeRange, path: str, columns: Sequence[str], filter: MessageFilter) -> Iterator[Any]:
    """The rows of one file that are wanted. Files are sorted by seq."""
    from pyarrow import parquet

    system, folder = filesystem(wanted.root)
    try:
        source = system.open_input_file(f"{folder}/{path}")
    except FileNotFoundError as error:
        raise NotFound(
            f"the file {path} of the archive in {wanted.root} is gone",
            "postbus pipeline run archive STREAM --verify says what is missing",
        ) from error
    with source, parquet.ParquetFile(source) as file:
        groups = [n for n in range(file.metadata.num_row_groups) if _may_hold(file.metadata.row_group(n), wanted)]
        present = [name for name in columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(_rows(file.metadata), row_groups=groups, columns=present):
            found = _wanted_rows(batch, wanted, filter)
            if found.num_rows:
                yield _complete(found, columns)


def _rows(metadata: Any) -> int:
    """How many rows make a batch of about BATCH_BYTES."""
    size = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    return int(max(1, min(_MOST_ROWS, BATCH_BYTES * metadata.num_rows // max(size, 1))))


def _may_hold(group: Any, wanted: LakeRange) -> bool:
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == "seq" and column.is_stats_set and column.statistics.has_min_max:
            return bool(column.statistics.max > wanted.after_seq and column.statistics.min <= wanted.to_seq)
    return True


def _wanted_rows(batch: Any, wanted: LakeRange, filter: MessageFilter) -> Any:
    import pyarrow
    import pyarrow.compute as pc

    # Sorted by seq: the range is a part of the batch, which need not be copied.
    first, end = batch.column("seq").to_numpy().searchsorted((wanted.after_seq, wanted.to_seq), side="right").tolist()
    batch = batch.slice(first, end - first)
    seq = batch.column("seq")
    tests = []
    if wanted.partition is not None:
        tests.append(pc.equal(batch.column("partition"), wanted.partition))
    for partition, after_seq in wanted.ahead:
        tests.append(pc.or_(pc.not_equal(batch.column("partition"), partition), pc.greater(seq, after_seq)))
    if filter.key is not None:
        tests.append(pc.equal(batch.column("key"), filter.key))
    if filter.key_prefix is not None:
        tests.append(pc.starts_with(batch.column("key"), filter.key_prefix))
    if filter.key_regex is not None:
        tests.append(pc.match_substring_regex(batch.column("key"), filter.key_regex))
    times: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (filter.from_time, pc.greater_equal),
        (filter.to_time, pc.less),
    )
    for time, compare in times:
        if time is not None:
            moment = pyarrow.scalar(time, pyarrow.timestamp("us", "UTC"))
            tests.append(compare(batch.column("published_at"), moment))
    return batch.filter(reduce(pc.and_, tests)) if tests else batch


def _complete(batch: Any, columns: Sequence[str]) -> Any:
    """With all columns: those that came after the file was written are null in it."""
    import pyarrow

    arrays = [
        batch.column(name) if name in batch.schema.names else pyarrow.nulls(batch.num_rows, pyarrow.string())
        for name in columns
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def merged(streams: Sequence[tuple[int, Iterator[Any]]]) -> Iterator[Any]:
    """Streams of batches that are sorted by seq, as one such stream. Each comes with a seq that is not above its first.

    Holds one batch of each stream that overlaps with others here, and of no more.
    """
    import pyarrow

    waiting = deque(sorted(streams, key=lambda each: each[0]))
    held: list[tuple[Iterator[Any], Any]] = []
    while waiting or held:
        while waiting and (not held or waiting[0][0] <= min(_last(batch) for _, batch in held)):
            held += _next(waiting.popleft()[1])
        if not held:
            return
        bound = min(_last(batch) for _, batch in held)
        ready, left = [], []
        for stream, batch in held:
            count = _count_up_to(batch, bound)
            ready.append(batch.slice(0, count))
            left += [(stream, batch.slice(count))] if count < batch.num_rows else _next(stream)
        held = left
        if len(ready) == 1:
            yield ready[0]
        else:
            yield from pyarrow.Table.from_batches(ready).sort_by("seq").combine_chunks().to_batches()


def _next(stream: Iterator[Any]) -> list[tuple[Iterator[Any], Any]]:
    """The stream with its next batch, if it has one."""
    batch = next(stream, None)
    return [] if batch is None else [(stream, batch)]


def _last(batch: Any) -> int:
    return int(batch.column("seq")[-1].as_py())


def _count_up_to(batch: Any, bound: int) -> int:
    if _last(batch) <= bound:
        return int(batch.num_rows)
    return int(batch.column("seq").to_numpy().searchsorted(bound, side="right"))
