"""What Sequin's own tests of 2024 promised of streams and pull consumers, and what no other test here says."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.server.conftest import Stream
from tests.server.serving import Api


@pytest.fixture
def keyed(api: Api) -> Stream:
    """A stream that keeps one message per key, as Sequin's did, and a consumer of it."""
    name = f"keyed-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name, "partitions": 4, "one_message_per_key": True})
    stream = Stream(api, name)
    stream.consumer("billing")
    return stream


def publish(stream: Stream, key: str, data: Any) -> Any:
    return stream.api.data("POST", f"{stream.path}/messages", {"messages": [{"key": key, "data": data}]})


def deliver(stream: Stream) -> list[Any]:
    """Receive what there is, ack it, and return the data."""
    received = stream.receive(batch_size=10)
    if received:
        ids = [each["ack_id"] for each in received]
        assert stream.api.post(f"{stream.billing}/ack", {"ack_ids": ids}).json() == {"success": True}
    return [each["message"]["data"] for each in received]


def test_a_new_version_of_a_key_takes_the_place_of_the_old(keyed: Stream) -> None:
    first = publish(keyed, "k", "v1")
    second = publish(keyed, "k", "v2")

    (message,) = keyed.api.data("GET", f"{keyed.path}/state")
    assert (message["key"], message["data"], message["seq"]) == ("k", "v2", second["seqs"][0])
    assert second["seqs"] > first["seqs"]
    assert deliver(keyed) == ["v2"]


def test_the_same_data_again_is_not_published(keyed: Stream) -> None:
    first = publish(keyed, "k", "v1")
    assert deliver(keyed) == ["v1"]

    again = publish(keyed, "k", "v1")

    assert (first["published"], "duplicates" in first) == (1, False)
    assert again == {"published": 0, "seqs": first["seqs"], "duplicates": [0]}
    assert deliver(keyed) == []


def test_only_new_messages_of_a_batch_count_as_published(keyed: Stream) -> None:
    publish(keyed, "same", "v1")
    items = [{"key": key, "data": data} for key, data in (("a", 1), ("same", "v1"), ("a", 2), ("b", 3))]

    answer = keyed.api.data("POST", f"{keyed.path}/messages", {"messages": items})

    assert (answer["published"], answer["duplicates"]) == (2, [0, 1])
    assert answer["seqs"][0] == answer["seqs"][2]
    assert sorted(map(str, deliver(keyed))) == ["2", "3", "v1"]


def test_a_new_version_of_what_was_acked_is_delivered(keyed: Stream) -> None:
    publish(keyed, "k", "v1")
    assert deliver(keyed) == ["v1"]

    publish(keyed, "k", "v2")

    assert deliver(keyed) == ["v2"]


def test_the_same_key_in_two_streams_does_not_touch(api: Api, keyed: Stream, orders: Stream) -> None:
    publish(keyed, "k", "here")
    publish(orders, "k", "there")

    assert deliver(keyed) == ["here"]
    assert deliver(orders) == ["there"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.>", ["a.b", "a.b.c", "a.b.c.d.e"]),
        ("a.*", ["a.b"]),
        ("a.b.>", ["a.b.c", "a.b.c.d.e"]),
        ("*.b.*", ["a.b.c"]),
        ("a.*.c.*", []),
        ("a.b", ["a.b"]),
        (">", ["a.b", "a.b.c", "a.b.c.d.e", "b"]),
    ],
)
def test_filters_follow_the_rules_of_their_tokens(orders: Stream, pattern: str, expected: list[str]) -> None:
    orders.send(("a.b", 1), ("a.b.c", 2), ("a.b.c.d.e", 3), ("b", 4))
    orders.consumer("filtered", filter_key_pattern=pattern)

    received = orders.receive("filtered", batch_size=10)

    assert [each["message"]["key"] for each in received] == expected


def test_messages_arriving_while_a_consumer_catches_up_are_delivered_once(orders: Stream) -> None:
    orders.send(*((f"k.{number}", number) for number in range(20)))
    orders.consumer("late")
    received = orders.receive("late", batch_size=5)
    orders.send(("k.20", 20))
    while batch := orders.receive("late", batch_size=100):
        received += batch

    assert sorted(each["message"]["data"] for each in received) == list(range(21))


def test_a_delivery_of_another_consumer_is_not_ones_own(api: Api, orders: Stream) -> None:
    orders.consumer("audit")
    orders.send(("k", 1))
    (mine,) = orders.receive()

    answer = api.post(f"{orders.path}/consumers/audit/ack", {"ack_ids": [mine["ack_id"]]})
    assert (answer.json(), answer.headers["x-postbus-count"]) == ({"success": True}, "0")
    assert api.post(f"{orders.path}/consumers/nobody/nack", {"ack_ids": [mine["ack_id"]]}).status_code == 404
    settled = api.post(f"{orders.billing}/ack", {"ack_ids": [mine["ack_id"]]})
    assert settled.headers["x-postbus-count"] == "1"
    assert len(orders.receive("audit")) == 1
