"""Consumers over HTTP: settings, receiving and settling. The cases are Sequin's."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api, serving
from tests.waiting import until


def ids(received: list[Any]) -> dict[str, list[str]]:
    return {"ack_ids": [each["ack_id"] for each in received]}


def data(received: list[Any]) -> list[Any]:
    return [each["message"]["data"] for each in received]


def test_a_consumer_is_created_listed_edited_and_deleted(api: Api, orders: Stream) -> None:
    created = orders.consumer(
        "shipping",
        filter_key_pattern="orders.>",
        kind="pull",
        ack_wait_ms=60_000,
        max_ack_pending=5,
        max_deliver=3,
        max_waiting=20,
        backoff_ms=[1000],
        backoff_factor=2,
        backoff_cap_ms=60_000,
        order="none",
    )
    assert created["stream_id"] == api.data("GET", orders.path)["id"]
    for field, value in {
        "name": "shipping",
        "filter_key_pattern": "orders.>",
        "kind": "pull",
        "status": "active",
        "ack_wait_ms": 60_000,
        "max_ack_pending": 5,
        "max_deliver": 3,
        "max_waiting": 20,
        "backoff_ms": [1000],
        "backoff_factor": 2,
        "order": "none",
    }.items():
        assert created[field] == value, field

    path = f"{orders.path}/consumers/shipping"
    edited = api.data("PATCH", path, {"max_deliver": None, "ack_wait_ms": 1000, "filter_key_pattern": None})
    assert (edited["max_deliver"], edited["ack_wait_ms"], edited["filter_key_pattern"]) == (None, 1000, None)
    assert api.data("PUT", path, {"status": "disabled"})["status"] == "disabled"
    assert [each["name"] for each in api.data("GET", f"{orders.path}/consumers")] == ["billing", "shipping"]
    assert api.data("DELETE", path) == {"id": created["id"], "name": "shipping", "deleted": True}
    assert api.get(path).status_code == 404


def test_filters_choose_by_key_and_history_is_delivered(orders: Stream) -> None:
    orders.send(("a.b", 1), ("a.b.c", 2), ("x", 3))
    orders.consumer("all", filter_key_pattern="a.>")
    orders.consumer("one", filter_key_pattern="a.*")
    assert data(orders.receive("all", batch_size=10)) == [1, 2]
    assert data(orders.receive("one", batch_size=10)) == [1]


def test_a_batch_is_in_order_and_in_flight_messages_are_not_delivered_again(orders: Stream) -> None:
    orders.send(*[(f"k.{n}", n) for n in range(3)])
    first = orders.receive(batch_size=2)
    assert len(first) == 2
    assert [each["message"]["seq"] for each in first] == sorted(each["message"]["seq"] for each in first)
    assert len(orders.receive(batch_size=10)) == 1
    assert orders.receive(batch_size=10) == []


def test_an_expired_delivery_is_redelivered_and_its_ack_no_longer_counts(api: Api, orders: Stream) -> None:
    orders.consumer("hasty", ack_wait_ms=50)
    orders.send(("k", 1))
    first = orders.receive("hasty")
    again = orders.receive("hasty", wait_for=5000)
    assert [(each["attempt"], each["message"]["data"]) for each in again] == [(2, 1)]
    late = api.post(f"{orders.path}/consumers/hasty/ack", ids(first))
    assert (late.json(), late.headers["x-postbus-count"]) == ({"success": True}, "0")


def test_ack_finishes_for_this_consumer_only_and_twice_is_fine(api: Api, orders: Stream) -> None:
    orders.consumer("other")
    orders.send(("k", 1))
    received = orders.receive()
    for count in ("1", "0"):
        answer = api.post(f"{orders.billing}/ack", ids(received))
        assert (answer.status_code, answer.json(), answer.headers["x-postbus-count"]) == (200, {"success": True}, count)
    assert orders.receive() == []
    assert data(orders.receive("other")) == [1]
    assert len(api.data("GET", f"{orders.path}/messages")) == 1


def test_nack_makes_a_message_available_at_once_or_after_a_delay(api: Api, orders: Stream) -> None:
    orders.send(("k", 1))
    received = orders.receive()
    assert api.post(f"{orders.billing}/nack", ids(received)).json() == {"success": True}
    assert api.post(f"{orders.billing}/nack", ids(received)).json() == {"success": True}
    assert [each["info"]["state"] for each in api.data("GET", f"{orders.billing}/messages?visible=true")] == [
        "available"
    ]
    again = orders.receive()
    assert again[0]["attempt"] == 2
    api.post(f"{orders.billing}/nack", {**ids(again), "delay_ms": 60_000, "reason": "not yet"})
    assert orders.receive() == []
    (held,) = api.data("GET", f"{orders.billing}/messages", params={"visible": "false"})
    assert (held["info"]["state"], held["info"]["reason"]) == ("waiting", "not yet")


def test_unknown_ack_ids_are_ignored_and_malformed_ones_are_400(api: Api, orders: Stream) -> None:
    assert api.post(f"{orders.billing}/ack", {"ack_ids": ["0123456789abcdef-1"]}).json() == {"success": True}
    for wrong in ([], ["nonsense"], [7], "text", None):
        refused = api.post(f"{orders.billing}/ack", {"ack_ids": wrong})
        assert refused.status_code == 400
        assert refused.json()["validation_errors"]
    assert api.post(f"{orders.path}/consumers/none/ack", {"ack_ids": ["0123456789abcdef-1"]}).status_code == 404


def test_extend_holds_a_delivery_and_terminate_makes_it_a_dead_letter(api: Api, orders: Stream) -> None:
    orders.consumer("hasty", ack_wait_ms=200)
    path = f"{orders.path}/consumers/hasty"
    orders.send(("k", 1))
    received = orders.receive("hasty")
    assert api.post(f"{path}/extend", {**ids(received), "ack_wait_ms": 60_000}).headers["x-postbus-count"] == "1"
    assert orders.receive("hasty", wait_for=500) == []
    assert api.post(f"{path}/terminate", {**ids(received), "reason": "poison"}).json() == {"success": True}

    (letter,) = api.data("GET", f"{path}/dead_letters")
    assert (letter["message"]["data"], letter["reason"], letter["deliver_count"]) == (1, "poison", 1)
    assert api.data("GET", f"{path}/dead_letters", params={"reason_like": "x%"}) == []
    assert api.data("POST", f"{path}/dead_letters/redrive", {"key_pattern": "other"}) == {"count": 0}
    assert api.data("POST", f"{path}/dead_letters/redrive", {}) == {"count": 1}
    assert data(orders.receive("hasty", wait_for=2000)) == [1]


def test_dead_letters_are_discarded_or_moved_to_another_stream(api: Api, orders: Stream) -> None:
    other = f"{orders.name}-dead"
    api.data("POST", "/api/streams", {"name": other})
    orders.send(("k.a", 1), ("k.b", 2))
    api.post(f"{orders.billing}/terminate", ids(orders.receive(batch_size=2)))
    body = {"key_pattern": "k.a", "to_stream": other}
    assert api.data("POST", f"{orders.billing}/dead_letters/redrive", body) == {"count": 1}
    assert [each["data"] for each in api.data("GET", f"/api/streams/{other}/messages")] == [1]
    assert api.data("POST", f"{orders.billing}/dead_letters/discard", {}) == {"count": 1}
    assert api.data("GET", f"{orders.billing}/dead_letters") == []


def test_auto_ack_leaves_nothing_to_ack(api: Api, orders: Stream) -> None:
    orders.send(("k", 1))
    assert data(orders.receive(auto_ack="true")) == [1]
    assert api.data("GET", f"{orders.billing}/stats")["in_flight"] == 0


def test_receive_by_post_takes_a_body_a_query_and_acks(api: Api, orders: Stream) -> None:
    orders.send(*[(f"k.{n}", n) for n in range(4)])
    by_query = api.data("POST", f"{orders.billing}/receive?batch_size=2")
    assert len(by_query) == 2
    answer = api.post(f"{orders.billing}/receive", {"batch_size": 10, **ids(by_query)})
    assert len(answer.json()["data"]) == 2
    assert answer.headers["x-postbus-count"] == "2"
    assert api.data("GET", f"{orders.billing}/stats")["in_flight"] == 2


def test_peek_shows_states_in_any_order_and_changes_nothing(api: Api, orders: Stream) -> None:
    seqs = orders.send(*[(f"k.{n}", n) for n in range(6)])
    held = [each["message"]["seq"] for each in orders.receive(batch_size=2)]

    def peek(**query: Any) -> list[int]:
        return [each["message"]["seq"] for each in api.data("GET", f"{orders.billing}/messages", params=query)]

    free = [seq for seq in seqs if seq not in held]
    for _ in range(2):
        assert peek() == seqs
        assert peek(visible="true") == free
        assert peek(visible="false") == sorted(held)
        assert peek(sort="seq_desc", limit=3) == seqs[:2:-1]
        assert peek(key_pattern="k.3") == [seqs[3]]
        assert peek(state="delivered", limit=1) == [min(held)]
    (info,) = {each["info"]["deliver_count"] for each in api.data("GET", f"{orders.billing}/messages?visible=false")}
    assert info == 1


def test_pause_resume_seek_and_replay(api: Api, orders: Stream) -> None:
    seqs = orders.send(("k", 1), ("k", 2), ("k", 3))
    assert api.data("POST", f"{orders.billing}/pause")["status"] == "disabled"
    assert orders.receive() == []
    assert api.data("POST", f"{orders.billing}/resume")["status"] == "active"
    api.post(f"{orders.billing}/ack", ids(orders.receive(batch_size=10)))
    assert orders.receive() == []

    assert api.data("POST", f"{orders.billing}/seek", {"from_seq": seqs[2]}) == {"position_seq": seqs[1]}
    api.post(f"{orders.billing}/ack", ids(orders.receive(batch_size=10)))
    api.data("POST", f"{orders.billing}/seek", {"start": "earliest"})
    everything = orders.receive(batch_size=10)
    assert data(everything) == [1, 2, 3]
    api.post(f"{orders.billing}/ack", ids(everything))

    assert api.data("POST", f"{orders.billing}/replay", {"from_seq": seqs[1], "to_seq": seqs[1]}) == {"count": 1}
    assert data(orders.receive(batch_size=10, wait_for=2000)) == [2]


def test_stats_show_how_far_a_consumer_has_come(api: Api, orders: Stream) -> None:
    orders.send(("k", 1), ("k", 2))
    orders.receive()
    stats = api.data("GET", f"{orders.billing}/stats")
    assert (stats["in_flight"], stats["dead"], len(stats["partitions"])) == (1, 0, 4)


@pytest.mark.parametrize(
    "query", ["batch_size=0", "batch_size=1001", "batch_size=many", "wait_for=300001", "batchsize=2"]
)
def test_receive_refuses_arguments_out_of_range(api: Api, orders: Stream, query: str) -> None:
    refused = api.get(f"{orders.billing}/receive?{query}")
    assert refused.status_code == 400
    assert query.partition("=")[0] in refused.json()["summary"]


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "sort=newest", "visible=perhaps", "key_pattern=a.>.b"])
def test_peek_and_read_refuse_arguments_out_of_range(api: Api, orders: Stream, query: str) -> None:
    assert api.get(f"{orders.billing}/messages?{query}").status_code == 400
    assert api.get(f"{orders.path}/messages?{query}").status_code == 400


def test_a_long_poll_returns_when_a_message_comes(orders: Stream) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(orders.receive, wait_for=20_000)
        time.sleep(0.2)
        started = time.monotonic()
        orders.send(("k", 1))
        assert data(waiting.result(10)) == [1]
        assert time.monotonic() - started < 5


def test_a_long_poll_returns_nothing_when_time_is_up(orders: Stream) -> None:
    started = time.monotonic()
    assert orders.receive(wait_for=300) == []
    assert 0.25 < time.monotonic() - started < 5


def test_of_many_who_wait_each_message_wakes_one(api: Api, orders: Stream) -> None:
    long_polls = api.server.state.long_polls
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(orders.receive, wait_for=20_000) for _ in range(8)]
        until(lambda: long_polls.waiting_count == 8, "all wait")
        for n in range(8):
            orders.send((f"k.{n}", n))
        received = [each for one in waiting for each in one.result(20)]
    assert sorted(data(received)) == list(range(8))


def test_hundreds_who_come_at_the_same_moment_do_not_fill_the_pool(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = postbus.AsyncConsumer.receive
    looking: list[int] = [0]

    async def count(*arguments: Any, **more: Any) -> Any:
        looking.append(looking[-1] + 1)
        try:
            return await receive(*arguments, **more)
        finally:
            looking.append(looking[-1] - 1)

    async def poll_all(url: str) -> set[bytes]:
        host, port = url.removeprefix("http://").split(":")
        path = "/api/streams/orders/consumers/billing/receive?wait_for=1000"
        lines = [await asyncio.open_connection(host, int(port)) for _ in range(300)]
        for _, writer in lines:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answers = {(await reader.readline()).split()[1] for reader, _ in lines}
        for _, writer in lines:
            writer.close()
        return answers

    with serving(fresh_url, connect_timeout=20) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        api.data("POST", "/api/streams/orders/consumers", {"name": "billing"})
        monkeypatch.setattr(postbus.AsyncConsumer, "receive", count)
        assert asyncio.run(poll_all(api.url)) == {b"200"}

    # Those that are let through, and the one that waits for all.
    assert 1 < max(looking) <= 17


def test_a_client_that_goes_away_makes_room_for_the_next(api: Api, orders: Stream) -> None:
    long_polls = api.server.state.long_polls
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{api.url}{orders.billing}/receive?wait_for=60000", timeout=0.3)
    until(lambda: long_polls.waiting_count == 0, "the server notices")
    orders.send(("k", 1))
    assert data(orders.receive(wait_for=5000)) == [1]


def test_a_stop_ends_long_polls_at_once(url: str) -> None:
    with serving(url) as api, ThreadPoolExecutor(1) as pool:
        name = f"stop-{time.time_ns()}"
        api.data("POST", "/api/streams", {"name": name})
        api.data("POST", f"/api/streams/{name}/consumers", {"name": "billing"})
        waiting = pool.submit(api.get, f"/api/streams/{name}/consumers/billing/receive?wait_for=60000")
        until(lambda: api.server.state.long_polls.waiting_count == 1, "it waits")
        started = time.monotonic()
        api.stop()
        assert waiting.result(1).json() == {"data": []}
        assert time.monotonic() - started < 5
