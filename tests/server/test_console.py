"""The pages of the console, as a browser asks for them and without JavaScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api, serving

OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
# The pages' own.
TAGS = {
    *("a", "aside", "body", "button", "code", "dd", "details", "dialog", "div", "dl", "dt", "fieldset"),
    *("figcaption", "figure", "form", "g", "h1", "h2", "h3", "head", "header", "html", "i", "input"),
    *("kbd", "label", "legend", "li", "link", "main", "meta", "meter", "nav", "ol", "option", "p"),
    *("path", "pre", "progress", "q", "rect", "script", "section", "select", "small", "span", "strong", "summary"),
    *("svg", "table", "tbody", "td", "textarea", "th", "thead", "time", "title", "tr", "ul"),
}
PAGES = (
    "",
    "streams",
    "consumers",
    "dead",
    "schedules",
    "sources",
    "push",
    "pipelines",
    "doctor",
    "tokens",
    "new/stream",
)


def page(api: Api, path: str, /, **query: Any) -> str:
    """The text of a page."""
    found = api.get(f"/console/{path}", params=query)
    assert found.status_code == 200, (path, found.status_code, found.text)
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    return unescape(found.text)


def send(api: Api, path: str, **fields: str) -> httpx.Response:
    """Send a form of a page."""
    return api.request("POST", f"/console/{path}", data=fields, headers=OWN)


@pytest.fixture
def closed(url: str) -> Iterator[Api]:
    """A server that asks for tokens."""
    with serving(url, require_tokens=True) as api:
        yield api


def token(url: str, *scopes: str, streams: tuple[str, ...] = ("*",)) -> str:
    with postbus.connect(url, upkeep=False) as bus:
        return bus.tokens.create("tester", scopes=scopes, streams=streams).text  # type: ignore[arg-type]


def logged_in(api: Api, text: str) -> None:
    answer = send(api, "login", token=text)
    assert (answer.status_code, answer.headers["location"]) == (303, "./")


@pytest.mark.parametrize("path", PAGES)
def test_each_page_can_be_shown(api: Api, orders: Stream, path: str) -> None:
    assert "<main" in page(api, path)


def test_the_pages_of_a_stream_show_its_messages_and_consumers(api: Api, orders: Stream) -> None:
    orders.send(("a.1", {"n": 1}), ("a.2", {"n": 2}))
    at = f"streams/{orders.name}"

    assert "billing" in page(api, at)
    assert '{"n":2}' in page(api, f"{at}/messages")
    assert '{"n":2}' not in page(api, f"{at}/messages", key="a.1")
    assert '{"n":2}' in page(api, f"{at}/messages", path="$.n=2")
    assert '{"n":1}' not in page(api, f"{at}/messages", path="$.n=2")
    assert "nobody has received it yet" in page(api, f"{at}/messages/1")
    assert "a.1" in page(api, f"{at}/consumers/billing")


def test_a_page_shows_what_became_of_a_message(api: Api, orders: Stream) -> None:
    orders.consumer("audit", keep_history_ms=3_600_000, max_deliver=1)
    orders.send(("a.1", 1), ("a.2", 2), ("a.3", 3))
    first, second, _ = orders.receive(batch_size=3, consumer="audit")
    ack = f"{orders.path}/consumers/audit"
    api.post(f"{ack}/ack", {"ack_ids": [first["ack_id"]]})
    api.post(f"{ack}/nack", {"ack_ids": [second["ack_id"]], "reason": "card declined"})

    fates = {seq: page(api, f"streams/{orders.name}/messages/{seq}") for seq in (1, 2, 3)}

    by_data = {first["message"]["data"]: "acked", second["message"]["data"]: "card declined"}
    for data, expected in by_data.items():
        assert expected in fates[data], data
    assert "given up after attempt 1" in fates[second["message"]["data"]]
    assert "its lease ends" in fates[3]


def test_numbers_keep_all_their_digits(api: Api, orders: Stream) -> None:
    numbers = '{"big":9223372036854775807,"bigger":123456789012345678901234567890,"exact":0.10000000000000000001}'
    answer = send(api, f"streams/{orders.name}/publish", key="k", data=numbers)
    assert answer.status_code == 303

    shown = re.sub("<[^>]+>", "", page(api, f"streams/{orders.name}/messages/1"))

    for digits in ("9223372036854775807", "123456789012345678901234567890", "0.10000000000000000001"):
        assert digits in shown
    lines = api.get(f"/console/streams/{orders.name}/messages", params={"as": "jsonl"}).text
    assert "123456789012345678901234567890" in lines
    assert json.loads(lines)["key"] == "k"


def test_a_spreadsheet_runs_nothing_of_a_message(api: Api, url: str) -> None:
    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream("notes", data_type="text", exist_ok=True)
        bus.publish("notes", key="k", data='=HYPERLINK("http://evil.example")')

    text = api.get("/console/streams/notes/messages", params={"as": "csv"}).text

    assert "'=HYPERLINK" in text


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'-alert(1)-'",
        "</textarea><script>alert(1)</script>",
        "javascript:alert(1)",
        "<!--",
        "\u202e\u0000"[:1],
    ],
)
def test_what_strangers_wrote_stays_text(api: Api, orders: Stream, text: str) -> None:
    orders.consumer("worker", max_deliver=1)
    key = re.sub(r"[\s.*>]", "_", text)
    body = {"messages": [{"key": key, "data": {text: text}, "headers": {"note": text}}]}
    api.data("POST", f"{orders.path}/messages", body)
    (delivery,) = orders.receive(consumer="worker")
    api.post(f"{orders.path}/consumers/worker/nack", {"ack_ids": [delivery["ack_id"]], "reason": text})

    for path in ("messages", "messages/1", "consumers/worker", "consumers/worker/dead", "publish?again=1", ""):
        shown = api.get(f"/console/streams/{orders.name}/{path}".rstrip("/")).text
        # What is left of tags is the pages' own.
        tags = re.findall(r"<\s*(\w+)", shown)
        assert set(tags) <= TAGS
        assert shown.count("<script") == 1
        assert not re.search(r"<[^>]+\son\w+=", shown)
        assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', shown))


def test_forms_do_what_they_say(api: Api, orders: Stream, url: str) -> None:
    at = f"streams/{orders.name}"
    with postbus.connect(url, upkeep=False) as bus:
        billing = bus.consumer(orders.name, "billing")
        assert send(api, f"{at}/consumers/billing", act="pause").status_code == 303
        assert billing.info().paused
        send(api, f"{at}/consumers/billing", act="resume")
        send(api, f"{at}/publish", key="a.1", data='{"n": 1}', headers="trace: x")
        (message,) = bus.read(orders.name)
        assert (message.key, message.data, message.headers) == ("a.1", {"n": 1}, {"trace": "x"})
        billing.terminate(billing.receive(), reason="broken")
        assert "broken" in page(api, f"{at}/consumers/billing/dead")
        send(api, f"{at}/consumers/billing/dead", act="redrive", seq="1")
        assert billing.dead_letters() == []
        assert billing.receive()[0].seq == 1
        send(api, f"{at}/consumers/billing", act="seek", to="latest")
        assert billing.stats().backlog == 0
        send(api, f"{at}/settings", max_messages="1,000", retain_up_to="7d")
        info = bus.stream_info(orders.name)
        assert (info.max_messages, info.retain_up_to and info.retain_up_to.days) == (1000, 7)
        send(api, f"{at}/settings", max_messages="", retain_up_to="7d")
        assert bus.stream_info(orders.name).max_messages is None
        send(api, f"{at}/consumers/billing/settings", ack_wait="2m", filter_key_pattern="a.>", backoff="1s, 10s")
        changed = billing.info()
        assert (changed.ack_wait.seconds, changed.filter_key_pattern, len(changed.backoff)) == (120, "a.>", 2)
        send(api, f"{at}/schedules", act="create", name="nightly", cron="30 2 * * *", data="{}")
        assert [each.name for each in bus.schedules.list_all(orders.name)] == ["nightly"]


def test_an_urgent_message_is_published_and_shown_as_such(api: Api, orders: Stream, url: str) -> None:
    at = f"streams/{orders.name}"
    send(api, f"{at}/publish", key="a.1", data="1", priority="9")
    with postbus.connect(url, upkeep=False) as bus:
        (message,) = bus.read(orders.name)
    assert message.priority == 9
    assert "<dt>priority</dt><dd>9</dd>" in page(api, f"{at}/messages/{message.seq}")
    assert "priority" in unescape(send(api, f"{at}/publish", data="1", priority="10").text)


def test_a_webhook_source_is_shown_and_paused(api: Api, orders: Stream, url: str) -> None:
    with postbus.connect(url, upkeep=False) as bus:
        bus.alter_stream(orders.name, dedup_window=3 * 86_400)
        name = f"hook-{orders.name[-6:]}"
        secret = bus.webhook_sources.create(name, orders.name, kind="github")
        assert name in page(api, "sources")
        assert secret
        assert secret not in page(api, "sources")

        send(api, "sources", act="pause", name=name, kind="webhook")
        assert bus.webhook_sources.info(name).paused
        send(api, "sources", act="resume", name=name, kind="webhook")
        assert not bus.webhook_sources.info(name).paused
        bus.webhook_sources.drop(name)


def test_an_endpoint_is_shown_without_its_secrets_and_paused(api: Api, orders: Stream, url: str) -> None:
    at = f"streams/{orders.name}/consumers/billing/push"
    assert "No endpoint" in page(api, at)
    with postbus.connect(url, upkeep=False) as bus:
        push = bus.consumer(orders.name, "billing").push
        secret = push.set("https://example.com/hook?token=hidden", headers={"authorization": "hidden-too"})
        shown = page(api, at) + page(api, "push") + page(api, f"streams/{orders.name}/consumers/billing")

        assert "https://example.com/hook?…" in shown
        assert secret
        for hidden in (secret, "token=hidden", "hidden-too"):
            assert hidden not in shown
        send(api, at, act="pause")
        assert (push.info() or pytest.fail("it is gone")).state == "paused"
        send(api, at, act="resume")
        said = send(api, at, act="test").headers["set-cookie"].replace("%20", " ")
        assert re.search(r"test \d+ is on its way", said)
        push.remove()


def test_a_stream_is_created_and_removed_by_its_name(api: Api, url: str) -> None:
    answer = send(
        api, "new/stream", name="made-here", partitions="2", **{"until_acked-shown": "1", "until_acked": "yes"}
    )
    assert answer.headers["location"] == "../streams/made-here"
    with postbus.connect(url, upkeep=False) as bus:
        info = bus.stream_info("made-here")
        assert (info.partitions, info.until_acked) == (2, True)
        send(api, "streams/made-here/new-consumer", name="reader", kind="consumer", to="earliest", order="none")
        assert [each.name for each in bus.list_consumers("made-here")] == ["reader"]

        assert send(api, "streams/made-here", act="drop", name="made").status_code == 400
        assert send(api, "streams/made-here", act="drop", name="made-here").status_code == 303
        with pytest.raises(postbus.NotFound):
            bus.stream_info("made-here")


def test_a_form_can_be_shown_as_code_and_then_changes_nothing(api: Api, orders: Stream, url: str) -> None:
    answer = send(api, f"streams/{orders.name}", act="drop", as_code="1")

    text = unescape(answer.text)
    assert f"bus.drop_stream('{orders.name}')" in text
    assert f"curl -X DELETE http://{api.url.removeprefix('http://')}/api/streams/{orders.name}" in text
    assert f"select postbus.drop_stream('{orders.name}');" in text
    with postbus.connect(url, upkeep=False) as bus:
        assert bus.stream_info(orders.name).name == orders.name


def test_moving_a_position_is_previewed(api: Api, orders: Stream) -> None:
    orders.send(*((f"a.{n}", n) for n in range(10)))
    received = orders.receive(batch_size=10)
    api.post(f"{orders.billing}/ack", {"ack_ids": [each["ack_id"] for each in received]})

    shown = page(api, f"streams/{orders.name}/consumers/billing", to="seq", at="4")

    (said,) = re.findall(r"<p>(The position moves.*?)</p>", shown)
    assert said == "The position moves to seq 4. 7 messages would be delivered again."
    assert "none would be skipped" in page(api, f"streams/{orders.name}/consumers/billing", to="latest")


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        ("new/stream", {"name": "no spaces"}, "no spaces"),
        ("new/stream", {"name": "x", "partitions": "many"}, 'partitions: "many" is not a number'),
        ("new/stream", {"name": "x", "retain_up_to": "soon"}, 'retain_up_to: "soon" is not a duration'),
        ("streams/{}/publish", {"data": "{'a': 1}"}, "the data is not JSON"),
        ("streams/{}/publish", {"data": "1", "headers": "no colon"}, "is not a header"),
        ("streams/{}/consumers/billing", {"act": "seek", "to": "seq", "at": "x"}, "the seq is not a number"),
        ("streams/{}/consumers/billing/dead", {"act": "redrive"}, "no dead letter is ticked"),
        ("streams/{}/consumers/none", {"act": "pause"}, 'consumer "none"'),
    ],
)
def test_what_is_wrong_with_a_form_is_said(
    api: Api, orders: Stream, path: str, fields: dict[str, str], said: str
) -> None:
    answer = send(api, path.format(orders.name), **fields)

    assert answer.status_code in (400, 404, 422)
    assert said in unescape(answer.text)


def test_without_a_token_there_is_only_the_login(closed: Api, url: str) -> None:
    for path in ("", "streams", "streams/x/messages", "tokens"):
        answer = closed.get(f"/console/{path}")
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            "../" * path.count("/") + "login" if path.count("/") else "./login",
        )
    assert send(closed, "login", token="wrong").status_code == 403
    logged_in(closed, token(url, "publish", "consume", "manage"))
    assert "Log out" in page(closed, "")
    assert closed.get("/api/streams").status_code == 401, "the cookie is for the console alone"
    send(closed, "logout")
    assert closed.get("/console/").status_code == 303


def test_the_cookie_of_a_session_is_kept_from_scripts_and_other_sites(closed: Api, url: str) -> None:
    answer = send(closed, "login", token=token(url, "manage"))

    assert re.search("HttpOnly; SameSite=Strict$", answer.headers["set-cookie"])


def test_a_token_shows_and_allows_its_own_streams_only(closed: Api, url: str) -> None:
    with postbus.connect(url, upkeep=False) as bus:
        for name in ("mine", "theirs"):
            bus.create_stream(name, exist_ok=True)
            bus.create_consumer(name, "reader", exist_ok=True)
    logged_in(closed, token(url, "consume", streams=("mine",)))

    shown = page(closed, "streams")
    assert "mine" in shown
    assert "theirs" not in shown + page(closed, "") + page(closed, "consumers")
    for path in ("streams/theirs", "streams/theirs/messages", "streams/theirs/consumers/reader", "doctor", "tokens"):
        assert closed.get(f"/console/{path}").status_code == 403, path
    assert "Pause" not in page(closed, "streams/mine/consumers/reader")
    assert send(closed, "streams/mine/consumers/reader", act="pause").status_code == 403
    assert send(closed, "streams/mine/publish", data="1").status_code == 403
    assert send(closed, "new/stream", name="another").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"user-agent": "Mozilla/5.0"},
    ],
)
def test_forms_of_other_sites_are_refused(closed: Api, url: str, headers: dict[str, str]) -> None:
    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream("mine", exist_ok=True)
        bus.create_consumer("mine", "reader", exist_ok=True)
        logged_in(closed, token(url, "manage"))

        answer = closed.request(
            "POST",
            "/console/streams/mine/consumers/reader",
            data={"act": "pause"},
            headers={"user-agent": "x", **headers},
        )

        assert answer.status_code == 403
        assert not bus.consumer("mine", "reader").info().paused


def test_a_read_only_console_changes_nothing(url: str) -> None:
    with serving(url, console="read-only") as api, postbus.connect(url, upkeep=False) as bus:
        bus.create_stream("mine", exist_ok=True)
        consumer = bus.create_consumer("mine", "reader", exist_ok=True)
        bus.publish("mine", data=1)
        (delivery,) = consumer.receive()

        shown = page(api, "streams/mine/consumers/reader")

        assert "Pause" not in shown
        assert ">ack<" not in shown
        assert send(api, "streams/mine/consumers/reader", act="pause").status_code == 403
        assert send(api, "streams/mine/consumers/reader", act="ack", ack_id=delivery.ack_id).status_code == 403
        assert send(api, "streams/mine/publish", data="1").status_code == 403
        assert not consumer.info().paused
        assert consumer.ack(delivery) == 1


def test_a_proxy_may_add_a_prefix(api: Api, orders: Stream) -> None:
    """No address begins with a slash, and each leads from its page to one that exists."""
    for path in ("", "streams", f"streams/{orders.name}", f"streams/{orders.name}/consumers/billing"):
        at = httpx.URL(f"{api.url}/console/{path}")
        for link in set(re.findall(r'(?:href|src|action)="([^"#]+)', page(api, path))):
            assert not link.startswith(("/", "http")), (path, link)
            assert api.client.get(at.join(link)).status_code in (200, 303, 405), (path, link)


def test_nothing_is_there_is_a_page_too(api: Api) -> None:
    for path in ("nothing", "streams/nothing", "streams/x/consumers/y", "static/0/none.js"):
        assert api.get(f"/console/{path}").status_code == 404
