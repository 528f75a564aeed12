"""Pages of the console and their forms: the archive, schedules, the overview, and figures that are those of `stats`."""

from __future__ import annotations

import json
import re
from html import unescape

import psycopg
import pytest

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api, serving
from tests.server.test_console import page, send
from tests.waiting import until


def test_the_archive_of_a_stream_is_shown(api: Api, orders: Stream, url: str) -> None:
    path = f"streams/{orders.name}/archive"
    assert f"postbus pipeline run archive {orders.name} --to /lake" in page(api, path)
    orders.send(*((None, n) for n in range(20)))
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("select postbus_data.open_archive(%s, '/lake/orders', 'archive-orders')", (orders.name,))

    shown = page(api, path)

    assert "/lake/orders" in shown
    assert "There is no archive" not in shown
    assert "<dt>behind, in seqs</dt><dd>20</dd>" in shown


def test_a_schedule_is_created_shown_and_changed(api: Api, orders: Stream, url: str) -> None:
    schedules = f"streams/{orders.name}/schedules"
    new = {"name": "beat", "every": "10m", "data": "1", "priority": "7", "headers": "kind: beat", "ttl": "1h"}
    assert send(api, schedules, act="create", catch_up="skip", **new).status_code == 303
    with postbus.connect(url, upkeep=False) as bus:
        made = bus.schedules.info(orders.name, "beat")
        assert (made.priority, made.headers, made.catch_up) == (7, {"kind": "beat"}, "skip")
        assert len(made.next_at) == 5

    same = {**new, "catch_up": "skip", "max_catch_up": "100", "time_zone": "UTC"}
    assert send(api, f"{schedules}/beat", act="alter", **same).status_code == 400
    cron = {**same, "every": "", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "ttl": "", "data": '{"n": 2}'}
    assert send(api, f"{schedules}/beat", act="alter", **cron).status_code == 303

    with postbus.connect(url, upkeep=False) as bus:
        info = bus.schedules.info(orders.name, "beat")
    assert (info.cron, info.every, info.time_zone, info.ttl, info.data) == (
        "30 2 * * *",
        None,
        "Europe/Berlin",
        None,
        {"n": 2},
    )
    assert (info.priority, info.headers) == (7, {"kind": "beat"})
    shown = page(api, f"{schedules}/beat")
    assert "30 2 * * *" in shown
    assert shown.count("<time") >= 5


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"cron": "0 0 31 2 *"}, "0 0 31 2 *"),
        ({"cron": "0 0 * * *", "time_zone": "Mars/X"}, "Mars/X"),
        ({"every": "soon"}, "soon"),
        ({"every": "1h", "priority": "10"}, "priority"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(
    api: Api, orders: Stream, url: str, times: dict[str, str], said: str
) -> None:
    answer = send(api, f"streams/{orders.name}/schedules", act="create", name="never", data="1", **times)

    assert (answer.status_code, said in unescape(answer.text)) == (400, True)
    with postbus.connect(url, upkeep=False) as bus:
        assert bus.schedules.list_all(orders.name) == []


def test_the_overview_says_how_everything_that_runs_by_itself_does(fresh_url: str) -> None:
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("orders")
        bus.schedules.create("orders", "beat", every=600, data=1)
        push = bus.create_consumer("orders", "hooks").push
        push.set("https://example.com/hook")
        push.pause("their maintenance")
        bus.publish("orders", data=1)
        bus.create_consumer("orders", "slow", order="none").receive()
    with serving(fresh_url) as api:
        shown = page(api, "")

    assert "orders / hooks is not pushed: its endpoint is paused: their maintenance" in shown
    assert re.search(r'<dt>endpoints</dt><dd><a[^>]*>1 <span class="badge warn">1 halted</span></a>', shown)
    assert re.search(r"<dt>schedules</dt><dd><a[^>]*>1</a></dd>", shown)
    assert re.search(r"<dt>longest lease</dt><dd><time", shown)


def test_a_change_of_settings_is_previewed(api: Api, orders: Stream, url: str) -> None:
    orders.send(*((None, n) for n in range(20)))
    settings = f"streams/{orders.name}/settings"
    change = {"act": "alter", "partitions": "8", "max_messages": "5", "retain_up_to": "1h"}

    shown = unescape(send(api, settings, preview="1", **change).text)

    assert "<td>partitions</td><td>4</td><td>8</td>" in shown
    assert "<td>retain up to</td>" in shown
    assert "lie in 8 partitions" in shown
    assert "about 15 messages, the oldest, are removed" in shown
    assert "No message is that old" in shown
    with postbus.connect(url, upkeep=False) as bus:
        assert bus.stream_info(orders.name).partitions == 4
        # The form below it saves the same.
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', shown))
        assert send(api, settings, **{**fields, "act": "alter"}).status_code == 303
        info = bus.stream_info(orders.name)
        assert (info.partitions, info.max_messages) == (8, 5)
    billing = f"streams/{orders.name}/consumers/billing/settings"
    shown = unescape(send(api, billing, act="alter", preview="1", filter_key_pattern="a.>").text)
    assert "What it has passed does not come again" in shown


def test_a_range_is_replayed_at_a_rate(api: Api, orders: Stream, url: str) -> None:
    seqs = orders.send(*((f"k.{n}", n) for n in range(10)))
    received = orders.receive(batch_size=10)
    api.post(f"{orders.billing}/ack", {"ack_ids": [each["ack_id"] for each in received]})
    billing = f"streams/{orders.name}/consumers/billing"

    assert send(api, billing, act="replay", seqs="9-3").status_code == 400
    assert send(api, billing, act="replay", seqs=f"{seqs[2]}-{seqs[4]}", rate="1000").status_code == 303

    with postbus.connect(url, upkeep=False) as bus:
        until(lambda: bus.tasks.run() or bus.tasks.list_all(orders.name)[0].state == "done", "it is done")
        bus.sweep(orders.name)
        assert sorted(each.seq for each in bus.consumer(orders.name, "billing").receive(10)) == seqs[2:5]


def test_the_log_says_who_did_what(fresh_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("orders")
        bus.create_consumer("orders", "billing")
        text = bus.tokens.create("ada", scopes=["consume", "manage"]).text
    with serving(fresh_url, require_tokens=True) as api:
        send(api, "login", token=text)
        assert send(api, "streams/orders/consumers/billing", act="pause", as_code="1").status_code == 200
        assert send(api, "streams/orders/consumers/billing", act="pause").status_code == 303
    lines = [json.loads(line) for line in "".join(capfd.readouterr()).splitlines() if line.startswith("{")]
    (done,) = [line for line in lines if line["event"] == "console"]
    assert (done["token"], done["did"]) == ("ada", "POST /api/streams/orders/consumers/billing/pause")
    assert text not in json.dumps(lines)


def test_the_first_page_is_small(fresh_url: str) -> None:
    with serving(fresh_url) as api, postbus.connect(fresh_url, upkeep=False) as bus:
        for number in range(60):
            bus.create_stream(f"a-stream-with-quite-a-long-name-{number}", partitions=1)
        first = api.get("/console/").text
        assets = re.findall(r'(?:href|src)="(\./static/[^"]+)"', first)
        assert len(assets) == 3
        sizes = [len(first.encode()), *(len(api.get(f"/console/{each}").content) for each in assets)]
    assert sum(sizes) < 60_000, sizes


def test_figures_are_those_of_stats(api: Api, orders: Stream, url: str) -> None:
    orders.send(*((f"k.{n}", n) for n in range(30)))
    orders.receive(batch_size=7)
    with postbus.connect(url, upkeep=False) as bus:
        consumer = bus.consumer(orders.name, "billing")
        bus.publish(orders.name, data="urgent", priority=9)
        stats = consumer.stats()
        shown = page(api, f"streams/{orders.name}/consumers/billing")

    tiles = dict(re.findall(r"<dt>([^<]*)</dt><dd>(?:<[^>]*>)*([^<]*)", shown))
    assert tiles["backlog"] == str(stats.backlog)
    assert tiles["in flight"] == str(stats.in_flight) == "7"
    assert tiles["waiting"] == str(stats.waiting)
    assert tiles["dead letters"] == str(stats.dead)
    assert {level: int(tiles[f"waiting, priority {level}"]) for level in stats.by_priority} == stats.by_priority
    positions = re.findall(r"<td>(\d+)(?:, priority (\d))?</td><td class=\"num\">([\d,]+)</td>", shown)
    assert [int(position.replace(",", "")) for _, _, position in positions] == [
        each.position_seq for each in stats.partitions
    ]


def test_no_two_fields_of_a_page_have_one_id(api: Api, orders: Stream) -> None:
    orders.send(("k", 1))
    for path in (
        "",
        "/settings",
        "/schedules",
        "/publish",
        "/consumers/billing",
        "/consumers/billing/dead",
        "/messages",
    ):
        text = page(api, f"streams/{orders.name}{path}")
        ids = re.findall(r'<[^>]* id="([^"]+)"', text)
        assert sorted(ids) == sorted(set(ids)), path
        labelled = re.findall(r'<label for="([^"]+)"', text)
        assert set(labelled) <= set(ids), path
