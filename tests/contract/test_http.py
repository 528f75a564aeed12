"""What is peculiar to a bus over HTTP."""

from __future__ import annotations

import json
import logging
import re
import shlex
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.client._sync.bus import Bus
from postbus.http._sync.client import HttpClient
from postbus.http.request import Request
from postbus.model.token import Scope
from postbus.transport._sync.http import HttpTransport
from tests.server.serving import Api, serving

pytestmark = pytest.mark.newest_server


class _Seen(Exception):
    pass


@contextmanager
def _looking(url: str, token: str | None = None) -> Iterator[tuple[Bus, list[Request]]]:
    """A bus whose requests are looked at and not sent."""
    requests: list[Request] = []

    def look(request: Request) -> None:
        requests.append(request)
        raise _Seen

    with Bus(HttpTransport(HttpClient(url, token=token, on_request=look))) as bus:
        yield bus, requests


def test_a_request_can_be_seen_without_being_sent() -> None:
    with _looking("http://nobody.invalid/", token="s3cret") as (bus, requests):
        with pytest.raises(_Seen):
            bus.publish("orders", key="it's", data={"ü": "'"})
        with pytest.raises(_Seen):
            bus.consumer("orders", "billing").receive(10, wait=5)

    publish, receive = requests
    assert (publish.method, publish.url) == ("POST", "http://nobody.invalid/api/streams/orders/messages")
    assert publish.headers == {"content-type": "application/json"}
    assert json.loads(publish.body or b"") == {"messages": [{"key": "it's", "data": {"ü": "'"}}]}
    assert (receive.method, receive.body) == ("GET", None)
    assert (
        receive.url == "http://nobody.invalid/api/streams/orders/consumers/billing/receive?batch_size=10&wait_for=5000"
    )
    assert receive.as_curl() == f"curl '{receive.url}' -H \"Authorization: Bearer $POSTBUS_TOKEN\""
    assert "s3cret" not in f"{publish!r} {publish.as_curl()} {bus!r} {vars(bus._transport)!r}"


def test_the_command_for_curl_runs(api: Api, name: str) -> None:
    with postbus.connect(api.url) as bus:
        bus.create_stream(name)
        with _looking(api.url) as (looking, requests), pytest.raises(_Seen):
            looking.publish(name, key="it's", data={"ü": "'\\\n"})

        answer = subprocess.run(shlex.split(requests[0].as_curl()), capture_output=True, check=True).stdout

        assert json.loads(answer)["data"]["published"] == 1
        assert [(each.key, each.data) for each in bus.read(name)] == [("it's", {"ü": "'\\\n"})]


def test_the_callers_transaction_is_refused(api: Api, name: str, connect: Any) -> None:
    with postbus.connect(api.url) as bus:
        consumer = bus.consumer(name, "billing")
        with pytest.raises(postbus.InvalidInput, match="over HTTP"):
            bus.publish(name, data=1, connection=connect())
        with pytest.raises(postbus.InvalidInput, match="over HTTP"):
            consumer.receive(connection=connect())
        with pytest.raises(postbus.InvalidInput, match="transaction=True is not possible over HTTP"):
            consumer.run(lambda delivery, connection: None, transaction=True)


def test_tokens_open_what_they_allow_and_are_never_shown(
    url: str, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(url, require_tokens=True) as api, postbus.connect(url) as direct:
        direct.create_stream(name)
        text = _token(url, name)
        with postbus.connect(api.url, token=text) as bus:
            assert bus.publish(name, data=1)
            with pytest.raises(postbus.NotAllowed, match="manage"):
                bus.drop_stream(name)
            assert text not in repr(bus) + str(vars(bus))
        monkeypatch.setenv("POSTBUS_TOKEN", text)
        with postbus.connect(api.url) as bus:
            assert bus.publish(name, data=2)
        with postbus.connect(api.url, token="wrong") as bus, pytest.raises(postbus.NotAllowed, match="not valid"):
            bus.publish(name, data=3)
    assert text not in caplog.text
    with pytest.raises(postbus.InvalidInput) as refused:
        postbus.connect(api.url, token="secret\nx-other: y")
    assert "secret" not in str(refused.value)


def test_a_token_to_consume_is_enough_for_a_worker(url: str, name: str) -> None:
    handled: list[int] = []
    with serving(url, require_tokens=True) as api, postbus.connect(url) as direct:
        direct.create_stream(name)
        direct.create_consumer(name, "billing", filter=">")
        direct.publish(name, key="k", data=1)
        with postbus.connect(api.url, token=_token(url, name, "consume")) as bus:
            bus.consumer(name, "billing").run(lambda delivery: handled.append(delivery.data), stop_when_empty=True)
    assert handled == [1]


def _token(url: str, stream: str, scope: Scope = "publish") -> str:
    with postbus.connect(url) as bus:
        return bus.tokens.create("test", scopes=[scope], streams=[stream]).text


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://", "not the URL of a server"),
        ("http://me:secret@localhost:7376", "no user and password"),
        ("http://localhost:7376/?a=1", "no query"),
        ("http://localhost:no", "not the URL of a server"),
        ("ftp://localhost", "not a URL of Postgres"),
    ],
)
def test_an_invalid_url_is_refused_with_the_reason(url: str, what: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=what) as refused:
        postbus.connect(url)
    assert "secret" not in str(refused.value)


def test_postgres_takes_no_token(url: str) -> None:
    with pytest.raises(postbus.InvalidInput, match="only works with a server"):
        postbus.connect(url, token="x")


def test_the_how_to_runs(url: str) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/use-python-over-http.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.S)
    scope: dict[str, Any] = {}
    with serving(url) as api:
        exec(snippet.replace("http://localhost:7376", api.url), scope)
    scope["bus"].close()
    assert [each.data for each in scope["batch"]] == [{"weight": 2}]


def test_an_unreachable_server_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(postbus.Unavailable, match="cannot connect to http://"):
            postbus.connect(f"http://127.0.0.1:{port}")


def test_a_restart_of_the_server_goes_unnoticed(url: str, name: str) -> None:
    with serving(url) as first:
        port = int(first.url.rpartition(":")[2])
        bus = postbus.connect(first.url)
        bus.create_stream(name)
    with pytest.raises(postbus.Unavailable):
        bus.publish(name, data=1)
    with serving(url, port=port):
        assert bus.publish(name, data=2)
        assert [message.data for message in bus.read(name)] == [2]
        bus.close()
    with pytest.raises(postbus.Unavailable, match="closed"):
        bus.publish(name, data=3)


def test_an_answer_of_another_version_is_reported() -> None:
    body = b'{"data": {"name": "orders", "something": "new"}}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with _answerless(answer) as (url, _), Bus(HttpTransport(HttpClient(url))) as bus:
        with pytest.raises(postbus.Error, match="cannot be decoded") as refused:
            bus.stream_info("orders")
        assert "same version" in str(refused.value.hint)


def test_a_publish_whose_answer_is_lost_is_not_sent_again() -> None:
    """Reads are tried once more; of a publish nobody knows what became, and the error says so."""
    with _answerless() as (url, requests), Bus(HttpTransport(HttpClient(url))) as bus:
        with pytest.raises(postbus.ConnectionLost, match="lost"):
            bus.publish("orders", data=1)
        assert len(requests) == 1

        with pytest.raises(postbus.ConnectionLost):
            bus.list_streams()
        assert len(requests) == 3


@contextmanager
def _answerless(answer: bytes = b"") -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads a request and hangs up, or answers always the same."""
    requests: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            with line:
                requests.append(line.recv(65536))
                line.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", requests
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)
