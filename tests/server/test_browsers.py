"""What a web page may make a browser do with a server that asks for no tokens: nothing, unless the page is the server's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.server.conftest import Stream
from tests.server.serving import connected, serving
from tests.server.test_errors import problem

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"
PAGES_OF_OTHERS: dict[str, Mapping[str, str]] = {
    "an image": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    "another port": {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    "a frame": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    "a fetch": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "origin": "https://evil.example"},
    "a page on port 3000": {"sec-fetch-site": "same-site", "origin": "http://localhost:3000"},
    "a sandboxed page": {"sec-fetch-site": "cross-site", "origin": "null"},
    "an old browser that says whose page it is": {"origin": "https://evil.example"},
    "a file": {"origin": "null"},
    "an extension": {"sec-fetch-site": "none", "origin": "chrome-extension://abc"},
    "something not yet invented": {"sec-fetch-site": "nearby"},
}
LINKS: dict[str, Mapping[str, str]] = {
    "a link of another site": {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    },
    "the address bar": {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    "an old browser": {"user-agent": FIREFOX},
    "something with a referrer": {"referer": "http://evil.example/"},
}
OWN_PAGES: dict[str, Mapping[str, str]] = {
    "a fetch": {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "user-agent": FIREFOX},
    "a fetch without referrer": {"sec-fetch-site": "same-origin", "sec-fetch-mode": "same-origin", "origin": "null"},
}
PROGRAMS: dict[str, Mapping[str, str]] = {
    "curl": {"user-agent": "curl/8.14.1", "accept": "*/*"},
    "Node": {"user-agent": "node", "accept-language": "*", "sec-fetch-mode": "cors"},
    "Java": {"user-agent": "Java/21", "accept": "text/html, image/gif, image/jpeg, */*; q=.2"},
    "PowerShell": {"user-agent": "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1682"},
    "nobody": {"user-agent": ""},
}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "application/json")


@pytest.fixture
def stream(orders: Stream) -> Iterator[Stream]:
    """A stream with a message, of which nothing may be taken and to which nothing may be added."""
    orders.send(("a", 1))
    yield orders
    assert len(orders.api.data("GET", f"{orders.path}/messages")) == 1
    stats = orders.api.data("GET", f"{orders.billing}/stats")
    assert (stats["in_flight"], stats["dead"]) == (0, 0)


@pytest.mark.parametrize("page", PAGES_OF_OTHERS)
def test_a_page_of_another_site_reads_and_leases_nothing(stream: Stream, page: str) -> None:
    for path in (f"{stream.billing}/receive", f"{stream.path}/messages", "/api/streams", "/metrics", "/health"):
        problem(stream.api.get(path, headers=PAGES_OF_OTHERS[page]), 403, "forbidden")


@pytest.mark.parametrize("page", [*PAGES_OF_OTHERS, *LINKS])
@pytest.mark.parametrize("kind", FORMS)
def test_a_page_of_another_site_sends_no_form(stream: Stream, page: str, kind: str) -> None:
    headers = {**{**PAGES_OF_OTHERS, **LINKS}[page], "content-type": kind}
    body = '{"messages":[{"key":"k","data":"="}]}'
    for path in (f"{stream.path}/messages", f"{stream.billing}/receive", f"{stream.path}/purge", "/api/sweep"):
        content = body if path.endswith("/messages") else ""
        problem(stream.api.request("POST", path, content=content, headers=headers), 403, "forbidden")


@pytest.mark.parametrize("page", PAGES_OF_OTHERS)
def test_a_page_of_another_site_gets_no_leave_for_other_requests(stream: Stream, page: str) -> None:
    asking = {"access-control-request-method": "DELETE", "access-control-request-headers": "content-type"}
    answer = stream.api.request("OPTIONS", stream.path, headers={**PAGES_OF_OTHERS[page], **asking})
    problem(answer, 403, "forbidden")
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    for method in ("DELETE", "PATCH", "PUT"):
        problem(stream.api.request(method, stream.billing, headers=PAGES_OF_OTHERS[page]), 403, "forbidden")


@pytest.mark.parametrize("link", LINKS)
def test_following_a_link_can_read_but_leases_nothing(stream: Stream, link: str) -> None:
    headers = LINKS[link]
    for path in (f"{stream.billing}/receive", f"{stream.billing}/%72eceive?batch_size=100"):
        problem(stream.api.get(path, headers=headers), 403, "forbidden")
    answer = stream.api.get(f"{stream.path}/messages", headers=headers)
    assert answer.status_code == 200
    # Without these, an old browser would let another page embed it or run it as a script.
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


def test_images_and_prefetches_of_our_own_pages_lease_nothing(stream: Stream) -> None:
    image = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    link = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    prefetch = {**OWN_PAGES["a fetch"], "sec-purpose": "prefetch"}
    for headers in (image, link, prefetch):
        problem(stream.api.get(f"{stream.billing}/receive", headers=headers), 403, "forbidden")


def test_a_websocket_leases_nothing(stream: Stream) -> None:
    with connected(stream.api) as line:
        line.sendall(
            f"GET {stream.billing}/receive HTTP/1.1\r\nHost: {stream.api.url[7:]}\r\nOrigin: http://evil.example\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        assert line.recv(65536).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7376", "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "[::2]", "["]
)
def test_a_foreign_host_name_for_our_address_is_refused(stream: Stream, host: str) -> None:
    """A page of that name has the same origin, as far as its browser knows; so nothing else tells it from our own."""
    rebound = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    for headers in (rebound, {"host": host}):
        problem(stream.api.get(f"{stream.billing}/receive", headers=headers), 403, "forbidden")
        problem(stream.api.get("/metrics", headers=headers), 403, "forbidden")
        problem(stream.api.post("/api/sweep", {}, headers=headers), 403, "forbidden")


@pytest.mark.parametrize("page", OWN_PAGES)
def test_a_page_of_the_server_itself_may_do_everything(orders: Stream, page: str) -> None:
    headers = OWN_PAGES[page]
    message = {"messages": [{"key": "k", "data": 1}]}
    assert orders.api.post(f"{orders.path}/messages", message, headers=headers).status_code == 200
    received = orders.api.get(f"{orders.billing}/receive", headers=headers)
    assert len(received.json()["data"]) == 1
    assert orders.api.request("DELETE", orders.path, headers=headers).status_code == 200


def test_a_page_of_the_server_itself_in_an_old_browser_may_post(orders: Stream) -> None:
    orders.send(("a", 1))
    headers = {"user-agent": FIREFOX, "origin": orders.api.url, "referer": orders.api.url + "/"}
    received = orders.api.post(f"{orders.billing}/receive", {}, headers=headers)
    assert len(received.json()["data"]) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_receives_by_a_get(orders: Stream, program: str) -> None:
    orders.send(("a", 1))
    answer = orders.api.get(f"{orders.billing}/receive?batch_size=100", headers=PROGRAMS[program])
    assert len(answer.json()["data"]) == 1
    assert "x-frame-options" not in answer.headers


def test_a_server_answers_to_its_configured_host_names(url: str) -> None:
    with serving(url, allowed_hosts=("Bus.example.com",)) as api:
        for host in ("bus.example.com", "BUS.example.com:443", "localhost", "127.0.0.1", "[::1]:7376"):
            assert api.get("/api/streams", headers={"host": host}).status_code == 200
        page = {"host": "bus.example.com", "origin": "https://bus.example.com"}
        assert api.post("/api/sweep", {}, headers=page).status_code == 200
        problem(api.get("/api/streams", headers={"host": "evil.example"}), 403, "forbidden")


def test_an_insecure_server_refuses_pages_of_other_sites_too(url: str) -> None:
    with serving(url, host="0.0.0.0", insecure=True) as api:
        post = {"user-agent": FIREFOX, "content-type": "text/plain"}
        assert api.get("/api/streams", headers={"host": "postbus:7376"}).status_code == 200
        assert api.get("/api/streams", headers={"host": "10.0.0.7:7376", "user-agent": FIREFOX}).status_code == 200
        own = {"host": "10.0.0.7:7376", "origin": "http://10.0.0.7:7376"}
        assert api.post("/api/sweep", {}, headers=own).status_code == 200
        for headers in (
            {"origin": "http://evil.example"},
            {"host": "evil.example", "origin": "http://evil.example"},
            {"host": "evil.example", **post},
            post,
        ):
            problem(api.post("/api/sweep", {}, headers=headers), 403, "forbidden")


def test_a_server_with_tokens_leaves_it_to_them(url: str) -> None:
    with serving(url, require_tokens=True) as api:
        answer = api.get("/api/streams", headers={"host": "bus.example.com", "origin": "https://other.example"})
        problem(answer, 401, "unauthorized")
