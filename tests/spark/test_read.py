"""A stream as a DataFrame."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.errors import AnalysisException

import postbus
import postbus.spark
from postbus.db import arrow, session
from postbus.spark.slices import state_of


def read(spark: Any, url: str, stream: str, **options: Any) -> Any:
    return spark.read.format("postbus").options(url=url, stream=stream, **options).load()


def publish(bus: postbus.Bus, stream: str, count: int, first: int = 0) -> list[postbus.Seq]:
    messages = [postbus.Message(key=f"k.{n % 7}", data={"n": n}) for n in range(first, first + count)]
    return bus.publish_many(stream, messages)


def times(bus: postbus.Bus, stream: str) -> list[datetime]:
    return [message.published_at for message in bus.scan(stream) if message.published_at is not None]


def seqs_of(frame: Any) -> list[int]:
    return sorted(row.seq for row in frame.select("seq").collect())


def test_a_message_becomes_a_row_with_all_it_has(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    first = bus.publish(stream, key="orders.ü.1", data={"größe": [1, None]}, headers={"trace": "x", "empty": ""})
    second = bus.publish(stream, data="no key")

    rows = {row.seq: row for row in read(spark, url, stream).collect()}

    assert rows[first].asDict() == {
        "key": "orders.ü.1",
        "data": '{"größe":[1,null]}',
        "headers": {"trace": "x", "empty": ""},
        "partition": postbus.partition_of("orders.ü.1", 4),
        "seq": first,
        "published_at": times(bus, stream)[0].astimezone().replace(tzinfo=None),
    }
    assert (rows[second].key, rows[second].data, rows[second].headers) == (None, '"no key"', None)


def test_bytes_are_binary(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, data_type="bytes")
    bus.publish(name, key="a", data=b"\x00\xff")

    (row,) = read(spark, url, name).collect()

    assert bytes(row.data) == b"\x00\xff"


def test_an_empty_stream_has_no_rows(spark: Any, url: str, stream: str) -> None:
    assert read(spark, url, stream).collect() == []


def test_many_slices_over_many_segments_give_each_message_once(
    spark: Any, bus: postbus.Bus, url: str, name: str
) -> None:
    bus.create_stream(name, partitions=3, segment_bytes=65536)
    published: list[int] = []
    for step in range(4):
        published += publish(bus, name, 400, 400 * step)
        for _ in range(3):
            bus.maintain(name)
    assert bus.stream_info(name).segment_count > 2

    frame = read(spark, url, name, minPartitions=7)

    assert frame.rdd.getNumPartitions() == 7
    assert seqs_of(frame) == published
    for part in frame.select("key", "seq").rdd.glom().collect():
        for key in {row.key for row in part}:
            of_key = [row.seq for row in part if row.key == key]
            assert of_key == sorted(of_key)


def test_messages_above_the_horizon_are_not_read(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    before = publish(bus, stream, 3)
    with psycopg.connect(url) as connection:
        bus.publish(stream, key="open", data=1, connection=connection)
        publish(bus, stream, 3)
        assert seqs_of(read(spark, url, stream)) == before


def test_positions_are_seqs_times_words_or_per_partition(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    early = publish(bus, stream, 20)
    between = datetime.now(UTC)
    late = publish(bus, stream, 20)

    def between_positions(start: Any, end: Any = "latest") -> list[int]:
        return seqs_of(read(spark, url, stream, startingPosition=str(start), endingPosition=str(end)))

    assert between_positions(early[5], late[2]) == [*early[5:], *late[:3]]
    assert between_positions(between.isoformat()) == late
    assert between_positions("earliest", between.isoformat()) == early
    assert between_positions("latest") == []
    in_partition = [
        (seq, postbus.partition_of(f"k.{n % 7}", 4)) for seqs in (early, late) for n, seq in enumerate(seqs)
    ]
    expected = [seq for seq, partition in in_partition if partition != 2 or seq >= late[0]]
    assert between_positions(f'{{"2": {late[0]}}}') == expected


def test_purged_messages_are_gone(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    seqs = publish(bus, stream, 10)
    bus.purge(stream, before_seq=seqs[4])

    assert seqs_of(read(spark, url, stream)) == seqs[4:]


def test_messages_whose_time_is_over_are_read_as_the_bus_reads_them(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    seq = bus.publish(stream, key="a", data=1, ttl=0.001)
    time.sleep(0.01)
    assert not list(bus.create_consumer(stream, "worker").receive())

    assert seqs_of(read(spark, url, stream)) == [seq] == [message.seq for message in bus.scan(stream)]


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_give_the_same_with_and_without_pushdown(
    spark: Any, bus: postbus.Bus, url: str, stream: str, pushdown: str
) -> None:
    seqs = publish(bus, stream, 50)
    moment = max(times(bus, stream)).isoformat()
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    frame = read(session, url, stream)

    assert seqs_of(frame.where(f"seq > {seqs[9]} and seq <= {seqs[11]}")) == seqs[10:12]
    assert seqs_of(frame.where(f"seq >= {seqs[48]} and key like 'k.%'")) == seqs[48:]
    assert seqs_of(frame.where("key = 'k.3'")) == seqs[3::7]
    assert seqs_of(frame.where("key = 'k.3' and key = 'k.4'")) == []
    assert seqs_of(frame.where(f"published_at <= timestamp '{moment}'")) == seqs
    assert seqs_of(frame.where(f"published_at > timestamp '{moment}'")) == []
    partition = postbus.partition_of("k.3", 4)
    assert set(seqs[3::7]) <= set(seqs_of(frame.where(f"partition = {partition}")))


def test_a_pushed_filter_leaves_spark_nothing_to_filter(spark: Any, url: str, stream: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    frame = read(session, url, stream).where("seq > 10 and partition = 1")

    assert "Filter (" not in frame._jdf.queryExecution().executedPlan().toString()


def test_a_key_pattern_is_an_option(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    for key in ("a.b", "a.b.c", "x.b"):
        bus.publish(stream, key=key, data=1)

    assert [row.key for row in read(spark, url, stream, keyPattern="a.>").orderBy("seq").collect()] == ["a.b", "a.b.c"]
    assert [row.key for row in read(spark, url, stream, keyPattern="*.b").orderBy("seq").collect()] == ["a.b", "x.b"]


def test_json_becomes_columns_and_what_does_not_fit_is_kept(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    fitting = {"n": 1, "at": "2026-01-31T08:00:00+00:00", "tags": ["a"], "by": {"name": "b"}, "other": True}
    for data in (fitting, {"n": None}, {"n": "1"}, {"n": 2**40}, [1]):
        bus.publish(stream, key="a", data=data)
    schema = "n INT, at TIMESTAMP, tags ARRAY<STRING>, by STRUCT<name: STRING>, price DECIMAL(9,2)"

    rows = read(spark, url, stream, dataSchema=schema).orderBy("seq").collect()

    assert rows[0].data.asDict(recursive=True) == {
        "n": 1,
        "at": datetime(2026, 1, 31, 8, tzinfo=UTC).astimezone().replace(tzinfo=None),
        "tags": ["a"],
        "by": {"name": "b"},
        "price": None,
    }
    assert [row._corrupt for row in rows] == [None, None, '{"n":"1"}', '{"n":1099511627776}', "[1]"]
    assert rows[1].data.n is None
    assert [row.data for row in rows[2:]] == [None, None, None]


def test_a_schema_of_the_user_chooses_columns(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    bus.publish(stream, key="a", data={"n": 5})

    reader = spark.read.format("postbus").options(url=url, stream=stream)

    assert [tuple(row) for row in reader.schema("key STRING, data STRUCT<n: INT>").load().collect()] == [("a", (5,))]


def test_streams_are_tables_of_spark_sql(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 5)

    spark.sql(f"create or replace temporary view orders using postbus options (url '{url}', stream '{stream}')")

    assert spark.sql("select count(*) from orders where key = 'k.1'").collect()[0][0] == 1


def test_the_url_may_come_from_the_environment_or_a_file_and_is_in_no_plan(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(bus, stream, 2)
    file = tmp_path / "url"
    file.write_text(f"{url}\n")

    assert read(spark, "env:POSTBUS_OF_SPARK_TESTS", stream).count() == 2
    assert read(spark, f"file:{file}", stream).count() == 2
    frame = read(spark, url, stream).where("seq > 1")
    frame.explain(extended=True)
    assert url not in capsys.readouterr().out


def test_registering_makes_the_data_source_known(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 1)
    session = spark.newSession()
    postbus.spark.register(session)

    assert read(session, url, stream).count() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strem": "a"}, 'option "strem" is not known\nhint: did you mean stream?'),
        ({"writerId": "a"}, "option writerId is not one for reading"),
        ({"stream": "no-such"}, 'stream "no-such" does not exist'),
        ({"stream": ""}, "option stream is missing"),
        ({"url": "mysql://me:secret@localhost/db"}, "is not a URL of Postgres"),
        ({"url": "postgresql://me:secret@127.0.0.1:1/db"}, "cannot connect to Postgres"),
        ({"url": "env:NO_SUCH_VARIABLE"}, "the environment variable NO_SUCH_VARIABLE"),
        ({"url": "file:/no/such/file"}, "the file /no/such/file that option url names cannot be read"),
        ({"startingPosition": "yesterday"}, 'option startingPosition = "yesterday" is not a position'),
        ({"minPartitions": "many"}, 'option minPartitions = "many" is not a whole number'),
        ({"keyPattern": "a..b"}, 'key pattern "a..b" is not allowed'),
    ],
)
def test_read_errors_are_one_line(spark: Any, url: str, stream: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("postbus").options(**{"url": url, "stream": stream, **options}).load().collect()

    said = str(caught.value)
    assert message in said
    assert "Traceback" not in said
    assert "\tat " not in said
    assert "secret" not in said


def test_a_schema_that_cannot_be_is_refused(spark: Any, url: str, stream: str) -> None:
    reader = spark.read.format("postbus").options(url=url, stream=stream)

    with pytest.raises(AnalysisException, match="column seq is bigint, not string"):
        reader.schema("seq STRING").load().collect()
    with pytest.raises(AnalysisException, match='a stream has no column "quantity"'):
        reader.schema("quantity INT").load().collect()


def test_the_server_does_not_compile_the_plan_of_a_slice(bus: postbus.Bus, url: str, stream: str) -> None:
    with session.transaction(url) as database:
        system = state_of(database, stream).system

    (batch,) = arrow._copied(url, system, "select current_setting('jit') as jit", {})

    assert batch.to_pylist() == [{"jit": "off"}]
