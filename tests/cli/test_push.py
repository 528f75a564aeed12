"""`postbus consumer push` and `postbus push`: endpoints from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks import Webhook

import postbus
from tests.cli.shell import Shell
from tests.waiting import until

pytestmark = pytest.mark.newest_server

_RUN = "from postbus.cli.start import run; run()"


class Endpoint(ThreadingHTTPServer):
    """Notes what it is sent."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield endpoint
        endpoint.shutdown()
        thread.join()


def test_push_run_sends_signed_messages_until_it_is_stopped(fresh_url: str, endpoint: Endpoint) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "hook", "--defaults")
    (answer,) = shell.objects(
        "consumer", "push", "set", "orders", "hook", endpoint.url, "--mode", "standard", "--keep-successes"
    )
    shell("message", "send", "orders", "orders.a", '{"quantity": 4}')
    sender = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from postbus.cli.start import run; run()",
            "push",
            "run",
            "--url",
            fresh_url,
            "--push-allow",
            "127.0.0.0/8",
        ],
        env={**os.environ, "PYTHONWARNINGS": ""},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: endpoint.received, "the message is sent")
        headers, body = endpoint.received[0]
        event = Webhook(answer["secret"]).verify(body, headers)
        assert (event["type"], event["data"]) == ("orders.a", {"quantity": 4})

        (result,) = shell.objects("consumer", "push", "test", "orders", "hook")
        assert (result["status"], result["answer"], result["error"]) == (200, "ok", None)
        (attempt,) = shell.objects("consumer", "push", "attempts", "orders", "hook", "--outcome", "acked")
        assert (attempt["status"], attempt["answer"]) == (200, "ok")
    finally:
        sender.send_signal(signal.SIGTERM)
        _, said = sender.communicate(timeout=20)
    assert (sender.returncode, said.splitlines()[-1]) == (0, "stopped")
    assert answer["secret"] not in said
    assert "whsec" not in shell("consumer", "push", "info", "orders", "hook", "--json")


def test_what_is_not_allowed_is_named(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        bus.create_consumer("orders", "hook")

    for arguments, message in (
        (("https://ada:secret@example.com/",), "url is not one of http or https, or has a user name"),
        (("https://example.com/", "--timeout", "10m"), "timeout"),
        (("https://example.com/", "--mode", "xml"), '"xml" is not a mode'),
        (("https://example.com/", "-H", "webhook-id=1"), "headers have a name that Postbus sets itself"),
        ((), "url is missing"),
    ):
        with pytest.raises(postbus.InvalidInput) as refused:
            shell("consumer", "push", "set", "orders", "hook", *arguments)
        assert message in refused.value.message
        assert "secret" not in str(refused.value)
    with pytest.raises(postbus.NotFound, match="has no endpoint"):
        shell("consumer", "push", "info", "orders", "hook")
