"""Messages over HTTP: what is sent comes back."""

from __future__ import annotations

import base64
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.server.conftest import Stream
from tests.server.serving import Api, serving
from tests.waiting import until

VALUES: list[Any] = [
    "a string",
    '{ "quantity": 4 }',
    "",
    "ü✓ \u0000",
    {"quantity": 4, "nested": [1, 2.5, None, True]},
    [],
    None,
    False,
    1.5,
    123456789012345678901234567890,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_data_comes_back_as_it_was_sent(api: Api, orders: Stream, value: Any) -> None:
    orders.send(("orders.cus_a", value))

    (read,) = api.data("GET", f"{orders.path}/messages")
    (received,) = orders.receive()
    assert read["data"] == received["message"]["data"] == value
    assert type(received["message"]["data"]) is type(value)


def test_bytes_travel_as_base64_with_a_marker(api: Api) -> None:
    path = f"/api/streams/{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": path.rpartition("/")[2], "data_type": "bytes"})
    text = base64.b64encode(b"\x00\xff").decode()
    api.data("POST", f"{path}/messages", {"messages": [{"key": "k", "data": text, "encoding": "base64"}]})

    (message,) = api.data("GET", f"{path}/messages")
    assert (message["data"], message["encoding"]) == (text, "base64")

    for data, encoding in (("not base64!", "base64"), (4, "base64"), ("plain", None)):
        body = {"messages": [{"key": "k", "data": data, "encoding": encoding}]}
        assert api.post(f"{path}/messages", body).status_code == 400


def test_a_batch_is_published_in_order_all_or_none(api: Api, orders: Stream) -> None:
    body = {"messages": [{"key": f"k.{n}", "data": n, "headers": {"n": str(n)}} for n in range(20)]}
    answer = api.data("POST", f"{orders.path}/messages", body)
    assert answer["published"] == 20
    assert answer["seqs"] == sorted(answer["seqs"])
    read = api.data("GET", f"{orders.path}/messages")
    assert [(each["data"], each["headers"]["n"]) for each in read] == [(n, str(n)) for n in range(20)]

    body["messages"].append({"key": "k", "data": "x" * 9_000_000})
    refused = api.post(f"{orders.path}/messages", body)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert len(api.data("GET", f"{orders.path}/messages")) == 20


@pytest.mark.parametrize("item", [{"key": "k"}, {"data": 1}, {"key": "", "data": 1}, {"key": "a b", "data": 1}, 7])
def test_an_item_without_key_or_data_is_400_and_nothing_is_stored(api: Api, orders: Stream, item: Any) -> None:
    refused = api.post(f"{orders.path}/messages", {"messages": [{"key": "k", "data": 1}, item]})
    assert refused.status_code == 400
    assert refused.json()["summary"]
    assert api.data("GET", f"{orders.path}/messages") == []


def test_messages_are_read_by_page_pattern_range_and_backwards(api: Api, orders: Stream) -> None:
    seqs = orders.send(*[(f"orders.cus_{n % 2}", n) for n in range(6)])

    def read(**query: Any) -> list[int]:
        return [each["seq"] for each in api.data("GET", f"{orders.path}/messages", params=query)]

    assert read(limit=2) == seqs[:2]
    assert read(sort="seq_desc", limit=2) == [seqs[5], seqs[4]]
    assert read(key_pattern="orders.cus_1") == seqs[1::2]
    assert read(from_seq=seqs[1], to_seq=seqs[2]) == seqs[1:3]
    assert read(from_time="2020-01-01T00:00:00Z", to_time="2020-01-02T00:00:00Z") == []
    page = api.get(f"{orders.path}/messages", params={"limit": 4}).json()
    assert read(resume=page["resume"]) == seqs[4:]


def test_the_newest_message_of_a_key_can_be_had(api: Api, orders: Stream) -> None:
    orders.send(("orders.a", 1), ("orders.a", 2), ("orders.b", 3))
    assert api.data("GET", f"{orders.path}/messages/orders.a")["data"] == 2
    assert api.get(f"{orders.path}/messages/orders.c").status_code == 404
    assert api.get(f"{orders.path}/messages/orders.*").status_code == 400


def test_how_consumers_stand_to_a_message_can_be_had(api: Api, orders: Stream) -> None:
    orders.consumer("invoices", filter_key_pattern="invoices.>")
    orders.consumer("audit", filter_key_pattern="orders.*")
    orders.send(("orders.1", "old"), ("orders.1", "new"))
    api.post(f"{orders.billing}/ack", {"ack_ids": [each["ack_id"] for each in orders.receive(batch_size=10)]})
    orders.receive("audit", batch_size=10)

    found = api.data("GET", f"{orders.path}/messages/orders.1/consumer_info")

    assert found["message"]["data"] == "new"
    states = {each["consumer_name"]: (each["state"], each["deliver_count"]) for each in found["consumer_info"]}
    assert states == {"audit": ("delivered", 1), "billing": ("done", None)}


def test_messages_can_be_scheduled_listed_rescheduled_and_cancelled(api: Api, orders: Stream) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"messages": [{"key": "k", "data": 1}, {"key": "k", "data": 2}], "deliver_at": later}
    ids = api.data("POST", f"{orders.path}/messages", body)["scheduled_ids"]
    assert api.data("GET", f"{orders.path}/messages") == []
    listed = api.data("GET", f"{orders.path}/scheduled", params={"limit": 1})
    (rest,) = api.data(
        "GET",
        f"{orders.path}/scheduled",
        params={"after_at": listed[0]["deliver_at"], "after_id": listed[0]["id"]},
    )
    assert [listed[0]["data"], rest["data"]] == [1, 2]

    moved = {"ids": ids[:1], "deliver_at": (datetime.now(UTC) + timedelta(hours=2)).isoformat()}
    assert api.data("POST", f"{orders.path}/scheduled/reschedule", moved) == {"count": 1}
    assert api.data("POST", f"{orders.path}/scheduled/cancel", {"ids": ids}) == {"count": 2}
    assert api.data("GET", f"{orders.path}/scheduled") == []


def test_the_trace_of_a_publish_reaches_who_receives(api: Api, orders: Stream) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = {"messages": [{"key": "k", "data": 1, "headers": {"a": "b"}}]}
    assert api.post(f"{orders.path}/messages", body, headers={"traceparent": trace}).status_code == 200
    (received,) = orders.receive()
    assert received["message"]["headers"] == {"traceparent": trace, "a": "b"}


def test_single_publishes_at_the_same_time_share_statements_and_each_gets_its_own_answer(url: str) -> None:
    with serving(url) as api:
        name = secrets.token_hex(6)
        api.data("POST", "/api/streams", {"name": name, "max_message_bytes": 100})
        sizes: list[int] = []
        coalescer = api.server.state.coalescer
        send = coalescer._send

        async def counted(stream: str, messages: Any) -> list[Any]:
            sizes.append(len(messages))
            return await send(stream, messages)

        coalescer._send = counted  # type: ignore[method-assign]
        ready = threading.Barrier(16)

        def publish(worker: int) -> list[tuple[int, int, int]]:
            ready.wait()
            answers = []
            for n in range(20):
                data = "x" * 200 if (worker, n) == (3, 10) else f"{worker} {n}"
                answer = api.post(f"/api/streams/{name}/messages", {"messages": [{"key": "k", "data": data}]})
                answers.append((worker, n, answer.json()["data"]["seqs"][0] if answer.status_code == 200 else 0))
            return answers

        with ThreadPoolExecutor(16) as pool:
            answers = [each for worker in pool.map(publish, range(16)) for each in worker]
        stored = {each["seq"]: each["data"] for each in api.data("GET", f"/api/streams/{name}/messages?limit=1000")}

    assert [(worker, n) for worker, n, seq in answers if seq == 0] == [(3, 10)]
    assert stored == {seq: f"{worker} {n}" for worker, n, seq in answers if seq}
    assert max(sizes) > 1
    assert len(sizes) < 320


def test_scheduled_messages_come_by_themselves(fresh_url: str) -> None:
    with serving(fresh_url, services=True) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        api.data("POST", "/api/streams/orders/messages", {"messages": [{"key": "k", "data": 1}], "delay_ms": 100})
        assert until(lambda: api.data("GET", "/api/streams/orders/messages"), "it is published")[0]["data"] == 1


def test_the_time_of_a_message_has_its_own_and_sequins_names(api: Api, orders: Stream) -> None:
    orders.send(("orders.cus_a", 1))
    (read,) = api.data("GET", f"{orders.path}/messages")

    assert read["published_at"] == read["inserted_at"] == read["updated_at"]


def test_a_request_can_wait_until_a_message_is_done(api: Api, orders: Stream) -> None:
    orders.send(("orders.cus_a", 1))
    (received,) = orders.receive()
    path = f"{orders.path}/consumers/billing/message?seq={received['message']['seq']}"
    assert api.data("GET", f"{path}&wait_for=50")["info"]["state"] == "delivered"

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(api.data, "GET", f"{path}&wait_for=20000")
        api.data("GET", path)
        assert api.post(f"{orders.path}/consumers/billing/ack", {"ack_ids": [received["ack_id"]]}).status_code == 200
        assert waiting.result(10) is None
