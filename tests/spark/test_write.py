"""DataFrames that are published."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from pyspark import TaskContext
from pyspark.errors import AnalysisException, PythonException

import postbus
from postbus.spark.options import Address, WriteOptions
from postbus.spark.publishing import Staged
from postbus.spark.staging import chunks
from postbus.spark.writer import Writer


def save(frame: Any, url: str, stream: str, **options: Any) -> None:
    frame.write.format("postbus").options(url=url, stream=stream, **options).mode("append").save()


def numbers(spark: Any, count: int = 20, parts: int = 2) -> Any:
    return spark.range(0, count, 1, parts).selectExpr("concat('k.', id % 3) as key", "cast(id as string) as data")


def published(bus: postbus.Bus, stream: str) -> list[tuple[str | None, Any]]:
    return [(message.key, message.data) for message in bus.scan(stream)]


def staged_count(url: str) -> int:
    with psycopg.connect(url) as connection:
        (row,) = connection.execute("select count(*) from postbus_data.spark_staging").fetchall()
        return int(row[0])


def writer_for(url: str, stream: str, **options: Any) -> Writer:
    return Writer(WriteOptions(Address(url), stream, options.get("writer_id"), options.get("batch_id")), "json")


def test_rows_are_published_in_their_order(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    save(numbers(spark, 50, 3), url, stream)

    assert published(bus, stream) == [(f"k.{n % 3}", n) for n in range(50)]
    assert staged_count(url) == 0


def test_headers_bytes_and_missing_keys_can_be_written(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, data_type="bytes")
    frame = spark.sql(
        "select cast(null as string) as key, X'00FF' as data, map('a', 'ü') as headers "
        "union all select 'k', X'', cast(null as map<string, string>)"
    )

    save(frame, url, name)
    save(spark.sql("select X'01' as data"), url, name)

    assert [(m.key, m.data, m.headers) for m in bus.scan(name)] == [
        (None, b"\x00\xff", {"a": "ü"}),
        ("k", b"", None),
        (None, b"\x01", None),
    ]


def test_a_message_with_a_time_to_come_is_scheduled_and_the_others_are_published(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    frame = spark.sql(
        "select concat('k.', id) as key, cast(id as string) as data, "
        "case id when 1 then now() + interval 1 hour when 2 then now() - interval 1 hour end as deliver_at "
        "from range(0, 4, 1, 1)"
    )

    save(frame, url, stream)

    assert published(bus, stream) == [("k.0", 0), ("k.2", 2), ("k.3", 3)]
    (later,) = bus.list_scheduled(stream)
    assert (later.key, later.data) == ("k.1", 1)
    assert timedelta(minutes=59) < later.deliver_at - datetime.now(UTC) <= timedelta(hours=1)
    save(spark.sql("select 'k' as key, '9' as data, cast(null as timestamp) as deliver_at"), url, stream)
    assert published(bus, stream)[-1] == ("k", 9)


def test_bytes_can_be_scheduled_too(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, data_type="bytes")

    save(spark.sql("select X'00' as data, now() + interval 1 hour as deliver_at"), url, name)

    (later,) = bus.list_scheduled(name)
    assert later.data == b"\x00"


def test_an_empty_frame_publishes_nothing(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    save(numbers(spark, 0), url, stream)

    assert published(bus, stream) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 'a' as key, '1' as data, 7 as seq", "a message has no column seq"),
        ("select 'a' as key", "column data is missing"),
        ("select 1 as data", "column data is int, and has to be string"),
        ("select '1' as data, 'soon' as deliver_at", "column deliver_at is string, and has to be timestamp"),
        ("select '1' as data, map('a', 1) as headers", "column headers is map<string,int>"),
        ("select 'a..b' as key, '1' as data", 'its key "a..b" has an empty token'),
        ("select 'a' as key, '{' as data", "invalid input syntax for type json"),
        ("select 'a' as key, cast(null as string) as data", "its data is missing"),
    ],
)
def test_an_invalid_batch_is_refused_and_leaves_nothing(
    spark: Any, bus: postbus.Bus, url: str, stream: str, query: str, message: str
) -> None:
    with pytest.raises((AnalysisException, PythonException)) as caught:
        save(spark.sql(query), url, stream)

    assert message in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert published(bus, stream) == []
    assert staged_count(url) == 0


def test_a_stream_is_not_overwritten(spark: Any, url: str, stream: str) -> None:
    with pytest.raises(AnalysisException, match="a stream cannot be overwritten"):
        numbers(spark).write.format("postbus").options(url=url, stream=stream).mode("overwrite").save()


def test_a_task_that_fails_or_dies_twice_publishes_once(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    def fail_at_first(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            if context.attemptNumber() == 0:
                raise RuntimeError("the first attempt")
            if context.attemptNumber() == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    save(numbers(spark).mapInArrow(fail_at_first, "key string, data string"), url, stream)

    assert published(bus, stream) == [(f"k.{n % 3}", n) for n in range(20)]
    assert staged_count(url) == 0


def test_a_job_that_fails_leaves_nothing(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    frame = numbers(spark, 20, 4).selectExpr("key", "if(data = '19', raise_error('no'), data) as data")

    with pytest.raises(Exception, match="no"):
        save(frame, url, stream)

    assert published(bus, stream) == []
    assert staged_count(url) == 0


def test_a_writer_publishes_a_batch_id_once(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    for batch_id in (0, 0, 1, 1, 0):
        save(numbers(spark, 5), url, stream, writerId="invoices", batchId=batch_id)

    assert len(published(bus, stream)) == 10
    assert staged_count(url) == 0


def test_of_two_attempts_at_a_task_one_is_published_and_both_are_cleaned_up(
    bus: postbus.Bus, url: str, stream: str
) -> None:
    import pyarrow

    writer = writer_for(url, stream)
    batch = pyarrow.record_batch({"data": ["1", "2"]})

    writer.write(iter([batch]))
    second = writer.write(iter([batch]))
    writer.commit([second])
    writer.commit([second])

    assert published(bus, stream) == [(None, 1), (None, 2)]
    assert staged_count(url) == 0


def test_an_aborted_batch_leaves_nothing(bus: postbus.Bus, url: str, stream: str) -> None:
    import pyarrow

    writer = writer_for(url, stream)
    writer.write(iter([pyarrow.record_batch({"data": ["1"]})]))

    writer.abort([None])

    assert published(bus, stream) == []
    assert staged_count(url) == 0


def test_a_writer_may_write_to_two_streams_at_once(bus: postbus.Bus, url: str, stream: str) -> None:
    import pyarrow

    bus.create_stream(f"{stream}-other")
    writers = [writer_for(url, name, writer_id="w", batch_id=0) for name in (stream, f"{stream}-other")]
    staged = [writer.write(iter([pyarrow.record_batch({"data": ["1"]})])) for writer in writers]
    for writer, each in zip(writers, staged, strict=True):
        writer.commit([each])

    assert published(bus, stream) == published(bus, f"{stream}-other") == [(None, 1)]
    assert staged_count(url) == 0


def test_a_batch_whose_staged_messages_are_gone_is_not_published(bus: postbus.Bus, url: str, stream: str) -> None:
    import pyarrow

    writer = writer_for(url, stream, writer_id="w", batch_id=3)
    kept = writer.write(iter([pyarrow.record_batch({"data": ["1"]})]))
    gone = Staged(str(uuid.uuid4()), 1, 5, None)

    with pytest.raises(postbus.Unavailable, match="5 of 6 staged messages are gone"):
        writer.commit([kept, gone])

    assert published(bus, stream) == []
    writer.commit([kept])
    assert published(bus, stream) == [(None, 1)]


def test_large_batches_are_cut_by_count_and_size() -> None:
    import pyarrow

    many = pyarrow.record_batch({"data": ["1"] * 25_000})
    large = pyarrow.record_batch({"data": ["x" * 5_000_000] * 3})

    assert [chunk.num_rows for chunk in chunks([many])] == [10_000, 10_000, 5_000]
    assert [chunk.num_rows for chunk in chunks([large])] == [1, 1, 1]


def test_batches_staged_by_release_0_1_0_are_checked_and_published(bus: postbus.Bus, url: str, stream: str) -> None:
    stage = (
        "insert into postbus_data.spark_staging (attempt, chunk, writer, batch_id, message_count, keys, data)"
        " values (%s, 0, %s, %s, 2, %s, %s)"
    )
    publish = "select postbus_data.spark_publish(%s, 'old', %s, null, false, array[%s]::uuid[], array[2])"
    good, bad = str(uuid.uuid4()), str(uuid.uuid4())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(stage, (good, f"{stream}/old", 1, ["a", None], ["1", "2"]))
        connection.execute(publish, (stream, 1, good))
        connection.execute(stage, (bad, f"{stream}/old", 2, ["a", None], ["{", "2"]))
        with pytest.raises(psycopg.Error, match="not valid JSON"):
            connection.execute(publish, (stream, 2, bad))

    assert sorted((message.key or "", message.data) for message in bus.scan(stream)) == [("", 2), ("a", 1)]


def test_a_column_priority_sets_the_level_of_messages(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    consumer = bus.create_consumer(stream, "c")
    frame = spark.sql(
        "select concat('k.', id % 3) as key, cast(id as string) as data, "
        "case when id % 10 <> 4 then cast(id % 10 as int) end as priority, "
        "case id when 7 then now() + interval 1 hour end as deliver_at from range(0, 40, 1, 2)"
    )

    save(frame.drop("deliver_at"), url, stream)
    save(frame.where("data = '7'"), url, stream)

    assert [(m.data, m.priority) for m in bus.scan(stream)] == [(n, n % 10) for n in range(40)]
    assert [(m.data, m.priority) for m in bus.list_scheduled(stream)] == [(7, 7)]
    assert [m.priority for m in consumer.receive(10)] == [9] * 4
    read = spark.read.format("postbus").options(url=url, stream=stream, includePriority=True).load()
    assert sorted((int(row.data), row.priority) for row in read.collect()) == [(n, n % 10) for n in range(40)]
    assert read.where("key = 'k.1' and priority > 7").count() == 2
    assert read.where("priority = 9").select("seq").count() == 4


def test_a_priority_that_is_none_is_refused(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    with pytest.raises(PythonException, match="priority = 10 is not between 0 and 9"):
        save(spark.sql("select '1' as data, 10 as priority"), url, stream)
    with pytest.raises(AnalysisException, match="column priority is string, and has to be int"):
        save(spark.sql("select '1' as data, 'high' as priority"), url, stream)
    assert published(bus, stream) == []


def test_messages_with_the_default_priority_are_still_copied(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    save(spark.range(0, 5000, 1, 1).selectExpr("cast(id as string) as data", "4 as priority"), url, stream)
    assert {m.priority for m in bus.scan(stream)} == {4}
    with psycopg.connect(url) as connection:
        ((count,),) = connection.execute(
            "select count(*) from postbus_data.level as l join postbus_data.stream as s on s.id = l.stream_id where s.name = %s",
            (stream,),
        ).fetchall()
    assert count == 0
