"""Following a stream: offsets that are complete, durable and replayable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType

import postbus
from postbus.spark.plan import Parts
from postbus.spark.slices import Slice
from postbus.spark.source import PostbusDataSource
from postbus.spark.stream_reader import StreamReader

SCHEMA = StructType([StructField("key", StringType()), StructField("seq", LongType(), nullable=False)])


def reader(url: str, stream: str, **options: str) -> StreamReader:
    """A reader as Spark makes it, in this process."""
    return PostbusDataSource({"url": url, "stream": stream, **options}).streamReader(SCHEMA)


def seqs(source: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    batches = [batch for part in source.partitions(start, end) for batch in source.read(part)]
    return sorted(seq for batch in batches for seq in batch.column("seq").to_pylist())


def publish(bus: postbus.Bus, stream: str, count: int) -> list[postbus.Seq]:
    return bus.publish_many(stream, [postbus.Message(key=f"k.{n % 7}", data={"n": n}) for n in range(count)])


def test_a_batch_ends_below_open_publishers(bus: postbus.Bus, url: str, stream: str) -> None:
    source = reader(url, stream)
    start = source.initialOffset()
    before = publish(bus, stream, 5)
    with psycopg.connect(url) as connection:
        late = bus.publish(stream, key="open", data=1, connection=connection)
        after = publish(bus, stream, 5)
        middle = source.latestOffset(start, ReadAllAvailable())
        assert seqs(source, start, middle) == before
    end = source.latestOffset(middle, ReadAllAvailable())

    assert seqs(source, middle, end) == [late, *after]
    assert seqs(source, start, middle) == before


def test_nothing_new_is_the_same_offset(bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 3)
    source = reader(url, stream)
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    with psycopg.connect(url) as connection:
        bus.publish(stream, key="a", data=1, connection=connection)
        connection.rollback()

    assert source.latestOffset(end, ReadAllAvailable()) == end
    assert source.partitions(end, end) == []


def test_a_batch_is_limited_in_messages_and_gaps_do_not_stop_it(bus: postbus.Bus, url: str, stream: str) -> None:
    source = reader(url, stream, maxMessagesPerTrigger="4")
    offset = source.initialOffset()
    assert source.getDefaultReadLimit() == ReadMaxRows(4)
    published = publish(bus, stream, 6)
    with psycopg.connect(url) as connection:
        for _ in range(20):
            bus.publish(stream, key="a", data=1, connection=connection)
        connection.rollback()
    published += publish(bus, stream, 6)

    found: list[list[int]] = []
    while (end := source.latestOffset(offset, ReadMaxRows(4))) != offset:
        found.append(seqs(source, offset, end))
        offset = end

    assert [seq for batch in found for seq in batch] == published
    assert all(0 < len(batch) <= 4 for batch in found)


def test_available_now_ends_where_the_stream_ended_when_it_began(bus: postbus.Bus, url: str, stream: str) -> None:
    source = reader(url, stream)
    start = source.initialOffset()
    before = publish(bus, stream, 5)
    source.prepareForTriggerAvailableNow()
    publish(bus, stream, 5)

    end = source.latestOffset(start, ReadAllAvailable())

    assert seqs(source, start, end) == before
    assert source.latestOffset(end, ReadAllAvailable()) == end


def test_a_query_may_start_at_a_seq_at_the_end_or_per_partition(bus: postbus.Bus, url: str, stream: str) -> None:
    published = publish(bus, stream, 40)

    def found(position: str) -> list[int]:
        source = reader(url, stream, startingPosition=position)
        start = source.initialOffset()
        middle = source.latestOffset(start, ReadMaxRows(10))
        end = source.latestOffset(middle, ReadAllAvailable())
        return sorted(seqs(source, start, middle) + seqs(source, middle, end))

    assert found("earliest") == published
    assert found(str(published[30])) == published[30:]
    assert found("latest") == []
    places = {seq: postbus.partition_of(f"k.{n % 7}", 4) for n, seq in enumerate(published)}
    assert found(f'{{"2": {published[20]}}}') == [s for s in published if places[s] != 2 or s >= published[20]]


def test_a_batch_is_the_same_after_segments_have_moved_on(bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, partitions=3, segment_bytes=65536)
    source = reader(url, name)
    start = source.initialOffset()
    published = publish(bus, name, 600)
    end = source.latestOffset(start, ReadAllAvailable())
    for _ in range(6):
        bus.maintain(name)
        publish(bus, name, 300)

    assert bus.stream_info(name).segment_count > 1
    assert seqs(source, start, end) == published


def test_a_query_that_purging_has_overtaken_fails_or_continues(bus: postbus.Bus, url: str, stream: str) -> None:
    source = reader(url, stream)
    start = source.initialOffset()
    published = publish(bus, stream, 10)
    bus.purge(stream, before_seq=published[6])

    with pytest.raises(postbus.Conflict, match=f"messages from seq 1 to {published[5]} were purged"):
        source.latestOffset(start, ReadAllAvailable())

    lenient = reader(url, stream, failOnDataLoss="false")
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert seqs(lenient, start, end) == published[6:]


def test_purging_messages_already_read_is_not_data_loss(bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 10)
    source = reader(url, stream)
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    with psycopg.connect(url) as connection:
        bus.publish(stream, key="a", data=1, connection=connection)
        connection.rollback()
    bus.purge(stream, everything=True)

    assert source.latestOffset(end, ReadAllAvailable()) == end


@pytest.mark.parametrize("change", [{"system": "1"}, {"timeline": "00000009"}, {"stream_id": 1}, {"seq": 10**9}])
def test_an_offset_of_another_history_is_refused(
    bus: postbus.Bus, url: str, stream: str, change: dict[str, Any]
) -> None:
    published = publish(bus, stream, 3)
    foreign = {**reader(url, stream).initialOffset(), **change}

    with pytest.raises(postbus.Conflict, match="failOnDataLoss"):
        reader(url, stream).latestOffset(foreign, ReadAllAvailable())

    lenient = reader(url, stream, failOnDataLoss="false")
    if "seq" in change:
        assert lenient.latestOffset(foreign, ReadAllAvailable()) == foreign
    else:
        end = lenient.latestOffset(foreign, ReadAllAvailable())
        assert seqs(lenient, foreign, end) == published


def test_a_task_on_another_server_is_refused(bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 3)
    source = reader(url, stream)
    start = source.initialOffset()
    (task,) = source.partitions(start, source.latestOffset(start, ReadAllAvailable()))
    assert isinstance(task, Parts)
    elsewhere = Parts(tuple(replace(part, system="1") for part in task.parts if isinstance(part, Slice)))

    with pytest.raises(postbus.Conflict, match="reaches a different Postgres from this executor"):
        list(source.read(elsewhere))


def test_a_query_shows_its_position_as_a_consumer(bus: postbus.Bus, url: str, stream: str) -> None:
    source = reader(url, stream, consumer="lake")
    start = source.initialOffset()
    publish(bus, stream, 10)
    middle = source.latestOffset(start, ReadMaxRows(4))
    end = source.latestOffset(middle, ReadAllAvailable())

    source.commit(middle)
    assert bus.consumer(stream, "lake").stats().lag_estimate > 0
    source.commit(end)
    source.commit(middle)
    assert bus.consumer(stream, "lake").stats().lag_estimate == 0
    assert [p.position_seq for p in bus.consumer(stream, "lake").stats().partitions] == [end["seq"]] * 4


def test_retention_waits_for_a_query_whose_consumer_has_keep_unread(bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, max_messages=5)
    bus.create_consumer(name, "lake", keep_unread=True)
    source = reader(url, name, consumer="lake")
    start = source.initialOffset()
    published = publish(bus, name, 20)

    bus.maintain(name)
    assert [message.seq for message in bus.scan(name)] == published

    middle = source.latestOffset(start, ReadMaxRows(12))
    source.commit(middle)
    bus.maintain(name)
    assert [message.seq for message in bus.scan(name)] == published[12:]

    source.commit(source.latestOffset(middle, ReadAllAvailable()))
    bus.maintain(name)
    assert [message.seq for message in bus.scan(name)] == published[15:]


def test_a_consumer_of_workers_is_not_taken(bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 2)
    bus.create_consumer(stream, "workers").receive(max_messages=1)
    source = reader(url, stream, consumer="workers")

    with pytest.raises(postbus.Conflict, match="workers receive from it"):
        source.commit(source.initialOffset())


def copy_stream(spark: Any, url: str, source: str, target: str, checkpoint: Path, **options: Any) -> list[Any]:
    """Run a query that copies one stream to another as far as it goes; its progress."""
    query = (
        spark.readStream.format("postbus")
        .options(url=url, stream=source, **options)
        .load()
        .select("key", "data", "headers")
        .writeStream.format("postbus")
        .options(url=url, stream=target, checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return list(query.recentProgress)


def contents(bus: postbus.Bus, stream: str) -> list[tuple[str | None, Any]]:
    return [(message.key, message.data) for message in bus.scan(stream)]


def by_key(found: list[tuple[str | None, Any]]) -> dict[str | None, list[Any]]:
    return {key: [data for other, data in found if other == key] for key, _ in found}


@pytest.mark.timeout(600)
def test_a_query_continues_from_its_checkpoint_and_repeats_no_batch(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    publish(bus, stream, 100)
    progress = copy_stream(spark, url, stream, target, tmp_path, maxMessagesPerTrigger=60)
    assert [one["numInputRows"] for one in progress] == [60, 40]
    assert by_key(contents(bus, target)) == by_key(contents(bus, stream))

    # As if the driver had been killed after the batch was published and before Spark noted it.
    for file in (tmp_path / "commits").glob("*1*"):
        file.unlink()
    publish(bus, stream, 10)
    copy_stream(spark, url, stream, target, tmp_path)

    assert by_key(contents(bus, target)) == by_key(contents(bus, stream))


def test_a_consumer_has_no_lag_when_the_query_has_read_all(
    spark: Any, bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    publish(bus, stream, 10)
    copy_stream(spark, url, stream, target, tmp_path, consumer="copy", maxMessagesPerTrigger=6)
    assert bus.consumer(stream, "copy").stats().lag_estimate == 0

    publish(bus, stream, 5)
    assert bus.consumer(stream, "copy").stats().lag_estimate > 0
    copy_stream(spark, url, stream, target, tmp_path, consumer="copy")
    assert bus.consumer(stream, "copy").stats().lag_estimate == 0


def test_an_invalid_start_is_a_one_line_error(spark: Any, url: str, stream: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean maxMessagesPerTrigger") as caught:
        copy_stream(spark, url, stream, stream, tmp_path, maxMessagesPerTriger=1)

    assert "Traceback" not in str(caught.value).split("SQLSTATE")[0]
