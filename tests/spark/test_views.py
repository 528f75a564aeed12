"""Dead letters, and where consumers stand, as DataFrames."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pyspark.errors import AnalysisException

import postbus
from tests.spark.test_read import publish, read
from tests.waiting import until


def test_dead_letters_have_the_message_and_its_story(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    bus.publish(stream, key="a.1", data={"n": 1}, headers={"trace": "x"})
    bus.publish(stream, key="b.1", data={"n": 2})
    for name in ("billing", "mail"):
        consumer = bus.create_consumer(stream, name)
        consumer.terminate(consumer.receive(max_messages=2 if name == "billing" else 1), reason="broken")

    frame = read(spark, url, stream, read="deadLetters", consumer="billing")
    rows = frame.orderBy("seq").collect()

    assert [(r.consumer, r.key, r.data, r.headers, r.attempts, r.reason) for r in rows] == [
        ("billing", "a.1", '{"n":1}', {"trace": "x"}, 1, "broken"),
        ("billing", "b.1", '{"n":2}', None, 1, "broken"),
    ]
    assert all(row.died_at > row.published_at for row in rows)
    assert read(spark, url, stream, read="deadletters").count() == 3
    assert [
        r.key for r in read(spark, url, stream, read="deadLetters", keyPattern="b.>", consumer="billing").collect()
    ] == ["b.1"]


def test_dead_letters_have_the_state_that_was_saved_when_they_were_deferred(
    spark: Any, bus: postbus.Bus, url: str, stream: str
) -> None:
    for n in range(2):
        bus.publish(stream, key=f"a.{n}", data=n)
    consumer = bus.create_consumer(stream, "billing")
    for delivery in consumer.receive(max_messages=2):
        consumer.defer(delivery, delay=0, state=b"\x07" if delivery.data else {"page": 7})

    def given_up() -> int:
        return consumer.terminate(consumer.receive(max_messages=2), reason="broken")

    until(lambda: given_up() + 1 and len(consumer.dead_letters()) == 2, "both are dead")

    rows = read(spark, url, stream, read="deadLetters").orderBy("seq").collect()

    assert [(r.deferrals, r.saved_state, r.saved_state_bytes and bytes(r.saved_state_bytes)) for r in rows] == [
        (1, '{"page":7}', None),
        (1, None, b"\x07"),
    ]


def test_dead_letters_of_a_bytes_stream_are_binary(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, data_type="bytes")
    assert read(spark, url, name, read="deadLetters").collect() == []
    bus.publish(name, data=b"\x00\xff")
    consumer = bus.create_consumer(name, "worker")
    consumer.terminate(consumer.receive())

    (row,) = read(spark, url, name, read="deadLetters").select("data").collect()

    assert bytes(row.data) == b"\x00\xff"


def test_consumer_states_show_progress_of_each_partition(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    publish(bus, stream, 10)
    bus.create_consumer(stream, "idle")
    bus.create_consumer(stream, "busy").receive(max_messages=10)

    rows = read(spark, url, stream, read="consumerStates").collect()

    assert sorted({(row.consumer, row.in_flight) for row in rows if row.partition is None}) == [
        ("busy", 10),
        ("idle", 0),
    ]
    assert len([row for row in rows if row.consumer == "idle" and row.lag_estimate > 0]) > 1


def test_the_state_of_keys_is_a_table(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, one_message_per_key=True)
    for n in range(6):
        bus.publish(name, key=f"k.{n % 3}", data={"n": n})
    bus.delete_key(name, "k.0")

    rows = read(spark, url, name, read="state").orderBy("key").collect()

    assert [(row.key, row.data) for row in rows] == [("k.1", '{"n":4}'), ("k.2", '{"n":5}')]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"read": "state"}, "does not keep one message per key"),
        ({"read": "letters"}, 'option read = "letters" is not known'),
        ({"read": "deadLetters", "startingPosition": "5"}, "option startingPosition is not one for read = deadLetters"),
        ({"read": "deadLetters", "consumer": "no-such"}, 'consumer "no-such"'),
        ({"read": "consumerStates", "keyPattern": "a"}, "option keyPattern is not one for read = consumerStates"),
    ],
)
def test_a_view_that_cannot_be_is_refused_in_one_line(
    spark: Any, url: str, stream: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        read(spark, url, stream, **options).collect()

    assert message in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_history_has_what_became_of_each_delivery(spark: Any, bus: postbus.Bus, url: str, stream: str) -> None:
    seqs = publish(bus, stream, 10)
    bus.create_consumer(stream, "forgetful")
    consumer = bus.create_consumer(stream, "billing", keep_history=3600, backoff=[0], order="none")
    bad, *good = sorted(consumer.receive(max_messages=10), key=lambda each: each.seq)
    consumer.nack([bad], reason="no luck")
    consumer.ack(good)
    consumer.ack(consumer.receive(wait=5))

    rows = read(spark, url, stream, read="history").collect()

    assert {row.consumer for row in rows} == {"billing"}
    assert sorted(seq for row in rows if row.outcome == "acked" for seq in row.seqs) == seqs
    (failed,) = [row for row in rows if row.outcome == "failed"]
    assert (failed.seqs, failed.reason) == ([bad.seq], "no luck")
    (again,) = [row for row in rows if bad.seq in row.seqs and row.outcome == "acked"]
    assert again.attempts == [2]
    assert all(row.finished_at >= row.received_at for row in rows)
    middle = failed.finished_at
    frame = read(spark, url, stream, read="history").where(f"finished_at > timestamp'{middle}'")
    assert frame.select("outcome").distinct().collect()[0].outcome == "acked"
    assert read(spark, url, stream, read="history", consumer="forgetful").count() == 0


@pytest.mark.parametrize("data_type", ["json", "text", "bytes"])
def test_the_size_of_data_is_known_without_reading_it(
    spark: Any, bus: postbus.Bus, url: str, name: str, data_type: Literal["json", "text", "bytes"]
) -> None:
    bus.create_stream(name, data_type=data_type)
    bus.publish(name, key="a", data=b"\x00\xff\x10" if data_type == "bytes" else "ü")

    frame = spark.read.format("postbus").options(url=url, stream=name).schema("key STRING, size INT").load()

    assert [tuple(row) for row in frame.collect()] == [("a", {"json": 4, "text": 2, "bytes": 3}[data_type])]
