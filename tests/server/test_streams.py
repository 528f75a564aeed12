"""Streams over HTTP."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api


def test_a_stream_is_created_listed_edited_and_deleted(api: Api) -> None:
    name = f"s{secrets.token_hex(6)}"
    created = api.data("POST", "/api/streams", {"name": name, "partitions": 3, "data_type": "text"})
    assert (created["name"], created["partitions"], created["data_type"]) == (name, 3, "text")
    assert created["inserted_at"].endswith("Z")

    edited = api.data("PATCH", f"/api/streams/{name}", {"max_message_bytes": 1000, "segment_age_ms": 60_000})
    assert (edited["max_message_bytes"], edited["segment_age_ms"], edited["partitions"]) == (1000, 60_000, 3)
    assert api.data("GET", f"/api/streams/{name}")["max_message_bytes"] == 1000
    assert name in [each["name"] for each in api.data("GET", "/api/streams")]

    gone = api.data("DELETE", f"/api/streams/{name}")
    assert gone == {"id": created["id"], "name": name, "deleted": True}
    assert api.get(f"/api/streams/{name}").status_code == 404


def test_a_stream_can_be_named_by_its_id_but_a_name_wins(api: Api, orders: Stream) -> None:
    stream_id = api.data("GET", orders.path)["id"]
    assert api.data("GET", f"/api/streams/{stream_id}")["name"] == orders.name

    api.data("POST", "/api/streams", {"name": stream_id})
    assert api.data("GET", f"/api/streams/{stream_id}")["name"] == stream_id
    api.data("DELETE", f"/api/streams/{stream_id}")
    assert api.data("GET", f"/api/streams/{stream_id}")["name"] == orders.name


def test_a_consumer_can_be_named_by_its_id(api: Api, orders: Stream) -> None:
    consumer_id = api.data("GET", orders.billing)["id"]
    assert api.data("GET", f"{orders.path}/consumers/{consumer_id}")["name"] == "billing"


def test_purge_removes_what_is_old_or_everything(api: Api, orders: Stream) -> None:
    seqs = orders.send(*[("k", number) for number in range(5)])
    assert api.data("POST", f"{orders.path}/purge", {"before_seq": seqs[2]}) == {"start_seq": seqs[2]}
    assert [each["seq"] for each in api.data("GET", f"{orders.path}/messages")] == seqs[2:]

    api.data("POST", f"{orders.path}/purge", {"everything": True})
    assert api.data("GET", f"{orders.path}/messages") == []


def test_the_stats_of_a_stream_say_how_far_it_can_be_read(api: Api, orders: Stream) -> None:
    (seq,) = orders.send(("k", 1))
    stats = api.data("GET", f"{orders.path}/stats")
    assert (stats["horizon_seq"], stats["last_seq"], stats["holders"]) == (seq, seq, [])


def test_retention_settings_can_be_set_edited_and_cleared(api: Api, orders: Stream) -> None:
    policies = {"retain_up_to_ms": 60_000, "max_messages": 10, "max_storage": 2_000_000, "when_full": "refuse"}
    name = f"{orders.name}-kept"
    created = api.data("POST", "/api/streams", {"name": name, "until_acked": True, **policies})
    assert policies.items() <= created.items()
    assert (created["until_acked"], created["is_full"]) == (True, False)
    edited = api.data("PATCH", f"/api/streams/{name}", {"max_messages": None, "retain_at_least_ms": 1000})
    assert (edited["max_messages"], edited["retain_at_least_ms"], edited["max_storage"]) == (None, 1000, 2_000_000)
    wrong = api.request("PATCH", f"/api/streams/{name}", json={"retain_at_least_ms": 90_000})
    assert (wrong.status_code, wrong.json()["validation_errors"].keys()) == (422, {"retain_at_least"})


def test_a_full_stream_answers_507_until_there_is_room(api: Api, orders: Stream, url: str) -> None:
    path = f"/api/streams/{orders.name}-full"
    settings = {"name": path.rpartition("/")[2], "max_messages": 2, "when_full": "refuse"}
    api.data("POST", "/api/streams", settings)
    body = {"messages": [{"key": "k", "data": 1}]}
    with postbus.connect(url) as bus:
        for _ in range(3):
            api.data("POST", f"{path}/messages", body)
        bus.maintain()
        full = api.post(f"{path}/messages", body)
        assert (full.status_code, full.json()["code"]) == (507, "stream_full")
        api.data("POST", f"{path}/purge", {"everything": True})
        bus.maintain()
        api.data("POST", f"{path}/messages", body)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_storage_gb": 2}, {"max_storage": 2 * 2**30}),
        ({"retain_up_to": 60_000}, {"retain_up_to_ms": 60_000}),
        (
            {"retain_up_to": "30d", "retain_at_least": "12h"},
            {"retain_up_to_ms": 30 * 86400_000, "retain_at_least_ms": 12 * 3600_000},
        ),
        (
            {"max_storage_gb": 1, "retain_at_least": "infinite"},
            {"max_storage": 2**30, "retain_at_least_ms": 36500 * 86400_000},
        ),
    ],
)
def test_settings_are_taken_by_sequins_names(
    api: Api, name: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    created = api.data("POST", "/api/streams", {"name": name, **given})
    assert {field: created[field] for field in expected} == expected
    api.data("POST", "/api/streams", {"name": f"{name}-2"})
    edited = api.data("PATCH", f"/api/streams/{name}-2", given)
    assert {field: edited[field] for field in expected} == expected


def test_a_setting_by_two_names_is_refused(api: Api, name: str) -> None:
    twice = api.post("/api/streams", {"name": name, "max_storage": 2**30, "max_storage_gb": 1})
    assert (twice.status_code, twice.json()["code"]) == (422, "invalid_input")
