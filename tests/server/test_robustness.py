"""What a server must not be brought down, held up or confused by."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import pytest

from tests.server.conftest import Stream
from tests.server.serving import Api, connected, serving
from tests.server.test_errors import problem
from tests.waiting import until

LIMIT = 1.0


@pytest.fixture(scope="module")
def limited(url: str) -> Iterator[Api]:
    with serving(url, request_timeout=LIMIT, pool_size=4) as api:
        yield api


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"x","partitions":1.5',
        b'{"name":"x","partitions":1.5,}',
        b'{"name":"x","partitions":1.5,"x":' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"name":"\xff"}',
        b'\xef\xbb\xbf{"name":"x"',
    ],
)
def test_an_invalid_json_body_is_400(api: Api, body: bytes) -> None:
    problem(api.request("POST", "/api/streams", content=body), 400, "invalid_json")


def test_a_key_may_have_a_slash(api: Api, orders: Stream) -> None:
    orders.send(("a/b", 1), ("x/consumer_info", 2), ("%2F", 3))

    for key, data in (("a%2Fb", 1), ("x%2Fconsumer_info", 2), ("%252F", 3)):
        assert api.data("GET", f"{orders.path}/messages/{key}")["data"] == data
    problem(api.get(f"{orders.path}/messages/a/b"), 404, "not_found")


def test_requests_waiting_on_a_dropped_stream_get_an_error(api: Api, orders: Stream) -> None:
    answers: list[httpx.Response] = []

    def work(index: int) -> None:
        with httpx.Client(timeout=30) as client:
            while not over.is_set():
                if index % 2:
                    answers.append(client.get(f"{api.url}{orders.billing}/receive?wait_for=50"))
                else:
                    body = {"messages": [{"key": "k", "data": 1}]}
                    answers.append(client.post(f"{api.url}{orders.path}/messages", json=body))

    over = threading.Event()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        time.sleep(0.05)
        # It may meet the others in a deadlock twice; then the answer is 503, and says to try again.
        until(lambda: api.request("DELETE", orders.path).status_code == 200, "the stream is dropped")
        api.data("POST", "/api/streams", {"name": orders.name})
        orders.consumer("billing")
    over.set()
    for thread in threads:
        thread.join()

    assert [answer.text for answer in answers if answer.status_code not in (200, 404, 503)] == []


def test_a_stream_that_is_locked_does_not_take_the_others_with_it(limited: Api, orders: Stream, url: str) -> None:
    with psycopg.connect(url) as connection, ThreadPoolExecutor(8) as pool:
        connection.execute("select postbus.publish(%s, 'k', '1')", (orders.name,))
        # It waits for the transaction, and everybody else who wants the stream for it.
        waiting = [pool.submit(limited.request, "DELETE", orders.path)]
        time.sleep(0.2)
        waiting += [pool.submit(limited.get, f"{orders.path}/messages") for _ in range(3)]
        waiting += [
            pool.submit(limited.post, f"{orders.path}/messages", {"messages": [{"key": "k", "data": 1}]})
            for _ in range(3)
        ]
        for each in waiting:
            found = problem(each.result(), 503, "connection_lost")
            assert found["summary"] == "Postgres did not answer within 1 s"
        # The machine may be busy; the stream stays locked meanwhile.
        until(lambda: limited.get("/api/streams").status_code == 200, "others are answered")
    # The transaction was rolled back.
    assert limited.data("GET", orders.path)["name"] == orders.name


def test_a_token_that_is_revoked_waits_no_longer(api: Api, url: str, orders: Stream) -> None:
    token = api.data("POST", "/api/tokens", {"name": "waiting", "scopes": ["consume"]})
    headers = {"authorization": f"Bearer {token['token']}"}
    group = {"name": "g"}
    api.data("POST", f"{orders.path}/groups", group)
    with serving(url, require_tokens=True) as closed, ThreadPoolExecutor(2) as pool:
        polls = [
            pool.submit(closed.get, f"{orders.billing}/receive?wait_for=20000", headers=headers),
            pool.submit(closed.post, f"{orders.path}/groups/g/claim", {"wait_for": 20000}, headers=headers),
        ]
        time.sleep(0.5)
        started = time.monotonic()
        api.data("DELETE", f"/api/tokens/{token['id']}")
        for poll in polls:
            problem(poll.result(), 401, "unauthorized")
        assert time.monotonic() - started < 15


def test_messages_claimed_for_a_client_that_has_gone_go_to_another(api: Api, orders: Stream) -> None:
    api.data("POST", f"{orders.path}/groups", {"name": "g"})
    claim = f"{orders.path}/groups/g/claim"
    with pytest.raises(httpx.ReadTimeout):
        api.post(claim, {"wait_for": 20000, "lease_ms": 60000}, timeout=0.5)
    time.sleep(1.5)
    orders.send(("k", 1))
    assert len(api.data("POST", claim, {"wait_for": 5000})) == 1


def test_a_name_goes_before_an_id_whoever_made_it(api: Api, orders: Stream, url: str) -> None:
    number = api.data("GET", orders.path)["id"]
    assert api.data("GET", f"/api/streams/{number}")["name"] == orders.name
    with psycopg.connect(url) as connection:
        connection.execute("select postbus.create_stream(%s)", (number,))
    try:
        assert api.data("GET", f"/api/streams/{number}")["name"] == number
        api.data("POST", f"/api/streams/{number}/messages", {"messages": [{"key": "k", "data": 1}]})
        assert api.data("GET", f"{orders.path}/messages") == []
    finally:
        api.data("DELETE", f"/api/streams/{number}")


def test_an_offer_to_speak_http_2_is_ignored(api: Api, orders: Stream) -> None:
    body = b'{"messages":[{"key":"a","data":"Upgrade: h2c"}]}'
    with connected(api) as line:
        line.sendall(
            f"POST {orders.path}/messages HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            f"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert api.data("GET", f"{orders.path}/messages/a")["data"] == "Upgrade: h2c"


def test_metrics_are_served_for_any_accept_header(api: Api) -> None:
    for accept in ("application/openmetrics-text; version=abc", "text/plain; version=x.y", "nonsense"):
        assert api.get("/metrics", headers={"accept": accept}).status_code == 200


def test_versions_of_a_key_in_concurrent_requests_are_all_published(api: Api, orders: Stream) -> None:
    name = f"{orders.name}-latest"
    api.data("POST", "/api/streams", {"name": name, "one_message_per_key": True})

    def publish(number: int) -> Any:
        body = {"messages": [{"key": "k", "data": number}]}
        return api.data("POST", f"/api/streams/{name}/messages", body)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(publish, range(64)))
    assert [answer["published"] for answer in answers] == [1] * 64
    assert len({answer["seqs"][0] for answer in answers}) == 64


def test_concurrent_requests_with_duplicates_publish_each_message_once(api: Api, orders: Stream) -> None:
    name = f"{orders.name}-ids"
    api.data("POST", "/api/streams", {"name": name, "dedup_window_ms": 60_000})

    def publish(number: int) -> Any:
        messages = [{"key": "k", "data": "same", "dedup_id": "x"}, {"key": "k", "data": number}]
        return api.data("POST", f"/api/streams/{name}/messages", {"messages": messages})

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(publish, range(64)))
    assert sum(answer["published"] for answer in answers) == 1 + 64
    stored = [each["data"] for each in api.data("GET", f"/api/streams/{name}/messages?limit=1000")]
    assert sorted(stored, key=str) == sorted(["same", *range(64)], key=str)


def test_a_numeric_time_and_two_times_are_refused(api: Api, orders: Stream) -> None:
    problem(api.get(f"{orders.path}/messages?from_time=0.5"), 400, "invalid_input")
    body = {"messages": [{"key": "k", "data": 1}], "deliver_at": "2030-01-01T00:00:00Z", "delay_ms": 5}
    problem(api.post(f"{orders.path}/messages", body), 400, "invalid_input")


def test_a_stream_in_a_body_may_be_named_by_its_id(api: Api, orders: Stream) -> None:
    number = api.data("GET", orders.path)["id"]
    for path in ("/api/sweep", "/api/maintain"):
        assert api.post(path, {"stream": number}).status_code == 200
    assert api.post(f"{orders.billing}/dead_letters/redrive", {"to_stream": number}).status_code == 200


def test_an_id_in_a_body_does_not_tell_the_name_behind_it(api: Api, orders: Stream, url: str) -> None:
    number = api.data("GET", orders.path)["id"]
    token = api.data("POST", "/api/tokens", {"name": "other", "scopes": ["manage"], "streams": ["other"]})
    with serving(url, require_tokens=True) as closed:
        headers = {"authorization": f"Bearer {token['token']}"}
        found = problem(closed.post("/api/sweep", {"stream": number}, headers=headers), 403, "forbidden")
    assert found["summary"] == f'this token does not allow "manage" on stream "{number}"'
