"""Pages of other sites, in a real Chromium, against a server that asks for no tokens: whatever they try, nothing happens.

Names ending in .example lead to this machine, as a hostile name server could make them do.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests import servers
from tests.browser.conftest import CHROMIUM
from tests.server.serving import Api, serving

MESSAGES = '{"messages":[{"key":"k","data":"'
# Each is the body of a function of B (the server), S (a stream) and C (its consumer).
ATTEMPTS = {
    "an image": "add('img', {src: C + '/receive?batch_size=100'})",
    "a script": "add('script', {src: C + '/receive?batch_size=100'})",
    "a style sheet": "add('link', {rel: 'stylesheet', href: C + '/receive'})",
    "a prefetch": "add('link', {rel: 'prefetch', href: C + '/receive'})",
    "a preload": "add('link', {rel: 'preload', as: 'image', href: C + '/receive?n'})",
    "a prerender": "add('script', {type: 'speculationrules', textContent: JSON.stringify({prefetch: "
    "[{source: 'list', urls: [C + '/receive'], eagerness: 'immediate'}]})})",
    "a frame": "add('iframe', {src: C + '/receive'})",
    "an object": "add('object', {data: C + '/receive'})",
    "an embed": "add('embed', {src: C + '/receive'})",
    "a video": "add('video', {src: C + '/receive', preload: 'auto'})",
    "an audio": "add('audio', {src: C + '/receive', preload: 'auto'})",
    "a font": "new FontFace('f', `url(${C}/receive)`).load().catch(() => 0)",
    "a module": "import(C + '/receive').catch(() => 0)",
    "an image without referrer": "add('img', {referrerPolicy: 'no-referrer', src: C + '/receive?batch_size=9'})",
    "an anonymous image": "add('img', {crossOrigin: 'anonymous', src: C + '/receive?batch_size=8'})",
    "a style": "add('style', {textContent: `body { background: url(${C}/receive?batch_size=7) }`})",
    "an event source": "new EventSource(C + '/receive')",
    "a web socket": "new WebSocket(C.replace('http', 'ws') + '/receive')",
    "a fetch": "read(fetch(C + '/receive'))",
    "a fetch without cors": "fetch(C + '/receive', {mode: 'no-cors'}).catch(() => 0)",
    "a post without cors": "fetch(C + '/receive', {method: 'POST', mode: 'no-cors'}).catch(() => 0)",
    "a text": "fetch(S + '/messages', {method: 'POST', mode: 'no-cors', body: MESSAGES + '\"}]}'}).catch(() => 0)",
    "a beacon": "navigator.sendBeacon(S + '/messages', MESSAGES + '\"}]}')",
    "a beacon that receives": "navigator.sendBeacon(C + '/receive')",
    "json": "read(fetch(S + '/messages', {method: 'POST', headers: {'content-type': 'application/json'}, "
    "body: MESSAGES + '\"}]}'}))",
    "a delete": "read(fetch(S, {method: 'DELETE'}))",
    "a put": "read(fetch(C, {method: 'PUT', body: '{\"ack_wait_ms\":1}'}))",
    "a form that gets": "form('get', C + '/receive', '')",
    "a form": "form('post', C + '/receive', 'application/x-www-form-urlencoded')",
    "a form with parts": "form('post', C + '/receive', 'multipart/form-data')",
    "a form of text": "form('post', S + '/messages', 'text/plain', MESSAGES, '\"}]}')",
    "a form that purges": "form('post', S + '/purge', 'text/plain', '{\"to_seq\":100000,\"x\":\"', '\"}')",
    "a form in a sandbox": "add('iframe', {sandbox: 'allow-forms allow-scripts', srcdoc: "
    "`<form method=post action='${C}/receive'></form><script>document.forms[0].submit()</script>`})",
    "a ping": "{ const a = add('a', {href: '#', ping: C + '/receive'}); a.click() }",
    "reading figures": "read(fetch(B + '/metrics'))",
    "reading streams": "read(fetch(B + '/api/streams'))",
    "reading by a request of old": "{ const x = new XMLHttpRequest(); x.open('GET', B + '/api/overview'); "
    "x.onload = () => stolen.push(x.responseText); x.send() }",
}
PAGE = """<!doctype html><title>hostile</title><body><script>
const stolen = [], MESSAGES = '%s'
const add = (name, attributes) => document.body.appendChild(Object.assign(document.createElement(name), attributes))
const read = asked => asked.then(answer => answer.text()).then(text => stolen.push(text)).catch(() => 0)
function form(method, action, enctype, name, value) {
  const target = 'f' + Math.random(), frame = add('iframe', {name: target})
  const form = add('form', {method, action, enctype, target})
  if (name) form.appendChild(Object.assign(document.createElement('input'), {name, value}))
  form.submit()
}
</script>"""


@dataclass(frozen=True, slots=True)
class Target:
    api: Api
    stream: str

    @property
    def port(self) -> int:
        return urlsplit(self.api.url).port or 0

    def refused_count(self) -> int:
        """How many requests were answered 403."""
        figures = self.api.get("/metrics").text.splitlines()
        return sum(int(float(line.split()[-1])) for line in figures if "requests_total" in line and '"403"' in line)

    def state(self) -> Any:
        """Everything that a page could have changed."""
        get = self.api.data
        path = f"/api/streams/{self.stream}"
        stats = get("GET", f"{path}/consumers/billing/stats")
        return (
            [(each["seq"], each["data"]) for each in get("GET", f"{path}/messages")],
            {
                name: stats[name]
                for name in ("in_flight", "waiting", "dead", "expired", "position_seq")
                if name in stats
            },
            get("GET", f"{path}/consumers"),
            [each["name"] for each in get("GET", "/api/streams")],
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium whose names all lead to this machine."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        names = "--host-resolver-rules=MAP *.example 127.0.0.1"
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", names])
        yield found
        found.close()


@pytest.fixture(scope="module")
def hostile() -> Iterator[int]:
    """The port of another site."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (PAGE % MESSAGES).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site.server_port
        site.shutdown()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with servers.running(servers.names()[0]) as server, servers.database(server.url) as url:
        yield url


@pytest.fixture
def target(database: str) -> Iterator[Target]:
    stream = f"orders-{secrets.token_hex(4)}"
    with serving(database) as api:
        api.data("POST", "/api/streams", {"name": stream})
        api.data("POST", f"/api/streams/{stream}/consumers", {"name": "billing", "max_deliver": 1})
        messages = [{"key": str(number), "data": number} for number in range(5)]
        api.data("POST", f"/api/streams/{stream}/messages", {"messages": messages})
        yield Target(api, stream)


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1"])
def test_a_page_of_another_site_can_do_nothing(browser: Browser, hostile: int, target: Target, host: str) -> None:
    before = target.state()
    unsent = []
    for name, attempt in ATTEMPTS.items():
        refused = target.refused_count()
        tab = browser.new_page()
        tab.goto(f"http://{host}:{hostile}/")
        tab.evaluate(_script(f"http://127.0.0.1:{target.port}", target.stream, attempt))
        tab.wait_for_timeout(150)
        stolen = tab.evaluate("stolen")
        assert stolen == [], f"{name} read {stolen}"
        tab.close()
        assert target.state() == before, f"{name} changed something"
        if target.refused_count() == refused:
            unsent.append(name)
    # Else the browser itself held them back, and nothing was tried.
    assert unsent == []


def test_a_page_under_a_name_of_this_machine_is_not_the_servers_own(browser: Browser, target: Target) -> None:
    before = target.state()
    address = f"http://rebound.example:{target.port}"
    tab = browser.new_page()
    answer = tab.goto(address + "/api/streams")
    assert answer is not None
    assert answer.status == 403
    for method, path in (
        ("GET", f"/api/streams/{target.stream}/consumers/billing/receive"),
        ("POST", f"/api/streams/{target.stream}/consumers/billing/receive"),
        ("DELETE", f"/api/streams/{target.stream}"),
        ("GET", "/metrics"),
    ):
        status = tab.evaluate("([path, method]) => fetch(path, {method}).then(a => a.status)", [path, method])
        assert status == 403, (method, path)
    tab.close()
    assert target.state() == before


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_link_that_the_user_follows_shows_streams_and_leases_nothing(
    browser: Browser, hostile: int, target: Target, host: str
) -> None:
    before = target.state()
    for path, status in (("/api/streams", 200), (f"/api/streams/{target.stream}/consumers/billing/receive", 403)):
        tab = browser.new_page()
        answer = tab.goto(f"http://{host}:{target.port}{path}")
        assert answer is not None
        assert answer.status == status
        tab.goto(f"http://evil.example:{hostile}/")
        with tab.expect_navigation() as followed:
            tab.evaluate(f"location.href = 'http://{host}:{target.port}{path}'")
        assert followed.value.status == status
        tab.close()
    assert target.state() == before


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_page_of_the_server_itself_may_do_everything(browser: Browser, target: Target, host: str) -> None:
    tab = browser.new_page()
    tab.goto(f"http://{host}:{target.port}/api/streams")
    path = f"/api/streams/{target.stream}"
    ask = "([path, method, body]) => fetch(path, {method, body}).then(answer => answer.json())"
    assert tab.evaluate(ask, [f"{path}/messages", "POST", MESSAGES + '"}]}'])["data"]["published"] == 1
    assert len(tab.evaluate(ask, [f"{path}/consumers/billing/receive?batch_size=3", "GET", None])["data"]) == 3
    assert tab.evaluate(ask, [f"{path}/consumers/billing/receive", "POST", '{"batch_size":3}'])["data"]
    tab.evaluate(ask, [path, "DELETE", None])
    assert target.stream not in [each["name"] for each in target.api.data("GET", "/api/streams")]
    tab.close()


def _script(address: str, stream: str, attempt: str) -> str:
    path = f"{address}/api/streams/{stream}"
    return f"() => {{ const B = '{address}', S = '{path}', C = '{path}/consumers/billing'; {attempt}; return 0 }}"
