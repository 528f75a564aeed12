"""One round each of what pipelines do with a lake."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from benchmarks.comparison import Measurement, Single
from benchmarks.jobs.spark import read_all, stream_frame, timed
from postbus.pipelines import ArchiveOptions, archive_stream
from postbus.spark.archive import lake_schema

# Messages of the usual size of which a half is hard to compress; one call for every 10,000.
_FILL: Final = """
select count(postbus.publish_many(%s, batch.keys, batch.data))
from (
    select
        array_agg('orders.k' || mod(i, 1000)) as keys,
        array_agg('{"id":' || i || ',"x":"' || md5(i::text) || md5('b' || i) || md5('c' || i) || repeat('a', 104) || '"}') as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""


def fill_with_noise(url: str, stream: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_FILL, (stream, count))


@contextmanager
def lake() -> Iterator[Path]:
    """A folder for files, on the disk of the server if TMPDIR is."""
    path = Path(tempfile.mkdtemp(prefix="postbus-bench-lake-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def archive_all(spark: Any, url: str, stream: str, count: int) -> Measurement:
    """A whole archive, which is forgotten again."""
    with lake() as folder:
        options = ArchiveOptions(stream=stream, to=str(folder))
        found: list[int] = []
        seconds = timed(lambda: found.append(archive_stream(url, options, spark=spark)))
        forget_archive(url, stream)
    if found != [count]:
        raise RuntimeError(f"there are {count} messages, and {found} were archived")
    return Measurement(count, seconds)


def forget_archive(url: str, stream: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("delete from postbus_data.archive where stream_id = postbus_data.stream_id(%s)", (stream,))
        connection.execute("select postbus.drop_consumer(%s, 'archive')", (stream,))


def drop_archived(url: str, stream: str, position: int) -> None:
    """Let the log go of what is archived."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select postbus.purge(%s, before_seq => %s)", (stream, position + 1))
        for _ in range(3):
            connection.execute("select postbus.maintain(%s)", (stream,))


def read_tiers(spark: Any, url: str, stream: str, count: int) -> Measurement:
    options = {"url": url, "stream": stream, "includeArchive": "true"}
    return read_all(spark.read.format("postbus").options(**options).load(), count)


def read_apart(spark: Any, url: str, stream: str, folder: Path, archived: int, live: int) -> Measurement:
    """The files by Spark's own reader, then the log by ours: what reading both as one is to come near."""
    files = spark.read.schema(lake_schema("json")).option("recursiveFileLookup", "true").parquet(str(folder))
    seconds = read_all(files, archived).seconds + read_all(stream_frame(spark, url, stream, 1), live).seconds
    return Measurement(archived + live, seconds)


def megabytes_of_files(folder: Path) -> Single:
    return Single(sum(file.stat().st_size for file in folder.rglob("*.parquet")) / 1e6)


def megabytes_in_postgres(url: str, stream: str) -> Single:
    with psycopg.connect(url) as connection:
        (row,) = connection.execute("select i.bytes from postbus.stream_info(%s) as i", (stream,)).fetchall()
    return Single(row[0] / 1e6)
