"""Lake and log, read as one stream."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import postbus
from postbus.spark.archive_files import merged
from tests.spark.pipelines.test_archive import files, to_lake
from tests.spark.test_read import publish, read, seqs_of
from tests.spark.test_stream import copy_stream, reader, seqs


@pytest.fixture
def tiered(spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path) -> list[int]:
    """The seqs of a stream of which 60 messages are in the lake only, 20 in both and 20 in the log only."""
    bus.create_stream(name, partitions=4, max_messages=20)
    published = publish(bus, name, 80)
    to_lake(spark, url, name, tmp_path / "lake", batch=30)
    bus.maintain(name)
    assert [message.seq for message in bus.scan(name)] == published[60:]
    return [*published, *publish(bus, name, 20)]


def test_lake_and_log_are_one_stream_without_gap_or_overlap(
    spark: Any, bus: postbus.Bus, url: str, name: str, tiered: list[int]
) -> None:
    whole = read(spark, url, name, includeArchive="true")

    assert seqs_of(whole) == tiered
    assert seqs_of(read(spark, url, name)) == tiered[60:]
    assert seqs_of(read(spark, url, name, includeArchive="true", minPartitions=7)) == tiered
    by_seq = {row.seq: row for row in whole.collect()}
    for message in bus.scan(name):
        row = by_seq[message.seq]
        assert (row.key, row.data, row.partition) == (message.key, f'{{"n":{message.data["n"]}}}', message.partition)


@pytest.mark.slow
def test_filters_and_positions_reach_both(spark: Any, url: str, name: str, tiered: list[int]) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    frame = read(session, url, name, includeArchive="true")
    of_key = [seq for n, seq in enumerate(tiered) if (n if n < 80 else n - 80) % 7 == 3]
    partition = postbus.partition_of("k.3", 4)
    middle = frame.where(f"seq = {tiered[40]}").collect()[0].published_at

    assert seqs_of(frame.where(f"seq > {tiered[5]} and seq <= {tiered[90]}")) == tiered[6:91]
    assert seqs_of(frame.where("key = 'k.3'")) == of_key
    assert seqs_of(frame.where("key like 'k.3%'")) == of_key
    assert set(of_key) <= set(seqs_of(frame.where(f"partition = {partition}")))
    assert seqs_of(read(session, url, name, includeArchive="true", keyPattern="*.3")) == of_key
    assert seqs_of(frame.where(f"published_at > timestamp '{middle}'")) == tiered[80:]
    start = {"startingPosition": str(tiered[10]), "endingPosition": str(tiered[85])}
    assert seqs_of(read(session, url, name, includeArchive="true", **start)) == tiered[10:86]
    now = datetime.now(UTC).isoformat()
    assert seqs_of(read(session, url, name, includeArchive="true", startingPosition=now)) == []
    assert seqs_of(read(session, url, name, includeArchive="true", endingPosition=now)) == tiered


def test_a_query_from_the_beginning_goes_through_the_lake_to_the_log(
    url: str, bus: postbus.Bus, name: str, tiered: list[int]
) -> None:
    source = reader(url, name, includeArchive="true")
    offset = source.initialOffset()
    found: list[list[int]] = []
    while (end := source.latestOffset(offset, ReadMaxRows(25))) != offset:
        found.append(seqs(source, offset, end))
        assert seqs(source, offset, end) == found[-1]
        offset = end
    assert [seq for batch in found for seq in batch] == tiered
    assert all(len(batch) <= 25 for batch in found)
    more = publish(bus, name, 3)
    assert seqs(source, offset, source.latestOffset(offset, ReadAllAvailable())) == more

    late = reader(url, name, includeArchive="true", startingPosition=str(tiered[50]))
    start = late.initialOffset()
    middle = late.latestOffset(start, ReadAllAvailable())
    end = late.latestOffset(middle, ReadAllAvailable())
    assert sorted(seqs(late, start, middle) + seqs(late, middle, end)) == [*tiered[50:], *more]
    assert reader(url, name, includeArchive="true", startingPosition="latest").initialOffset()["seq"] == more[-1]


@pytest.mark.slow
def test_a_batch_is_the_same_after_it_was_archived_and_dropped(
    spark: Any, bus: postbus.Bus, url: str, name: str, tiered: list[int], tmp_path: Path
) -> None:
    source = reader(url, name, includeArchive="true")
    first = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    end = source.latestOffset(first, ReadAllAvailable())
    before = seqs(source, first, end)
    publish(bus, name, 40)
    to_lake(spark, url, name, tmp_path / "lake")
    for _ in range(3):
        bus.maintain(name)

    assert before == tiered[80:]
    assert seqs(source, first, end) == before


@pytest.mark.slow
def test_spark_streams_lake_and_log_into_another_stream(
    spark: Any, bus: postbus.Bus, url: str, name: str, target: str, tiered: list[int], tmp_path: Path
) -> None:
    copy_stream(spark, url, name, target, tmp_path / "checkpoint", includeArchive="true", maxMessagesPerTrigger=45)

    assert len(list(bus.scan(target))) == len(tiered)


@pytest.mark.slow
def test_a_file_that_is_gone_is_an_error_and_not_a_gap(
    spark: Any, url: str, name: str, tiered: list[int], tmp_path: Path
) -> None:
    files(tmp_path)[0].unlink()

    with pytest.raises(Exception, match=r"of the archive in .* is gone"):
        read(spark, url, name, includeArchive="true").collect()


def test_messages_lost_between_lake_and_log_raise_an_error(
    spark: Any, bus: postbus.Bus, url: str, name: str, tiered: list[int], tmp_path: Path
) -> None:
    bus.purge(name, before_seq=tiered[90])

    with pytest.raises(AnalysisException, match="were purged before they were archived"):
        seqs_of(read(spark, url, name, includeArchive="true"))
    left = [*tiered[:80], *tiered[90:]]
    assert seqs_of(read(spark, url, name, includeArchive="true", failOnDataLoss="false")) == left
    to_lake(spark, url, name, tmp_path / "lake", allow_loss=True)
    assert seqs_of(read(spark, url, name, includeArchive="true")) == left


def test_without_an_archive_there_is_only_the_log(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == publish(bus, stream, 0)
    published = publish(bus, stream, 5)
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published


@pytest.mark.parametrize("seed", range(20))
def test_sorted_streams_are_merged_into_one(seed: int) -> None:
    import pyarrow

    chance = random.Random(seed)
    numbers = list(range(chance.randrange(1, 200)))
    streams: list[list[int]] = [[] for _ in range(chance.randrange(1, 6))]
    for number in numbers:
        chance.choice(streams).append(number)

    def batches(stream: list[int]) -> Any:
        while stream:
            count = chance.randrange(1, 20)
            yield pyarrow.record_batch({"seq": pyarrow.array(stream[:count], pyarrow.int64())})
            stream = stream[count:]

    given = [(stream[0] if stream else 0, batches(stream)) for stream in streams]
    found = [seq for batch in merged(given) for seq in batch.column("seq").to_pylist()]

    assert found == numbers


def test_lake_and_log_hold_messages_of_all_levels(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, partitions=4, max_messages=30)
    messages = [postbus.Message(key=f"k.{n % 7}", data=n, priority=n % 10) for n in range(120)]
    published = [int(seq) for seq in bus.publish_many(name, messages[:80])]
    to_lake(spark, url, name, tmp_path / "lake", batch=30)
    bus.maintain(name)
    assert len(list(bus.scan(name))) == 30
    published += [int(seq) for seq in bus.publish_many(name, messages[80:])]

    whole = read(spark, url, name, includeArchive="true", includePriority="true")

    assert sorted((row.seq, int(row.data), row.priority) for row in whole.collect()) == [
        (seq, n, n % 10) for n, seq in enumerate(published)
    ]
    assert seqs_of(whole.where("key = 'k.3'")) == published[3::7]
    source = reader(url, name, includeArchive="true", consumer="lake")
    offset = source.initialOffset()
    found: list[int] = []
    while (end := source.latestOffset(offset, ReadAllAvailable())) != offset:
        found += seqs(source, offset, end)
        offset = end
    source.commit(offset)
    assert sorted(found) == published
    assert bus.consumer(name, "lake").stats().backlog == 0
