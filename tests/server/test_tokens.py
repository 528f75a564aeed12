"""Who may do what."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from postbus.server.auth import Bucket
from postbus.server.settings import Settings, is_loopback
from tests.server.serving import Api, serving
from tests.waiting import until


@pytest.fixture(scope="module")
def closed(url: str, api: Api) -> Iterator[Api]:
    """A server that asks for tokens, on the database of the open one, with which tokens are made here."""
    with serving(url, require_tokens=True) as closed:
        yield closed


def header(api: Api, **token: Any) -> dict[str, str]:
    created = api.data("POST", "/api/tokens", {"name": "test", "scopes": ["manage"], **token})
    return {"authorization": f"Bearer {created['token']}"}


def stream(api: Api) -> str:
    name = f"s-{secrets.token_hex(4)}"
    api.data("POST", "/api/streams", {"name": name})
    api.data("POST", f"/api/streams/{name}/consumers", {"name": "billing"})
    return name


def test_without_a_valid_token_everything_but_health_is_401(api: Api, closed: Api) -> None:
    for path in ("/api/streams", "/api/streams/none", "/api/tokens", "/metrics"):
        for headers in (
            {},
            {"authorization": "Bearer nonsense"},
            {"authorization": "Basic abc"},
            {"authorization": "Bearer"},
        ):
            answer = closed.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
    assert closed.get("/health").status_code == 200
    assert closed.get("/api/streams", headers=header(api)).status_code == 200


def test_a_token_is_shown_once_and_stored_hashed(api: Api, url: str) -> None:
    created = api.data("POST", "/api/tokens", {"name": "once", "scopes": ["publish"]})
    listed = next(each for each in api.data("GET", "/api/tokens") if each["id"] == created["id"])
    assert "token" not in listed
    with psycopg.connect(url) as connection:
        rows = connection.execute("select t::text from postbus_data.token as t").fetchall()
    assert not any(created["token"] in row[0] for row in rows)


def test_scopes_are_kept_apart(api: Api, closed: Api) -> None:
    path = f"/api/streams/{stream(api)}"
    messages = {"messages": [{"key": "k", "data": 1}]}
    requests = {
        "publish": ("POST", f"{path}/messages", messages),
        "consume": ("GET", f"{path}/consumers/billing/receive", None),
        "manage": ("GET", f"{path}/stats", None),
    }
    for scope in requests:
        headers = header(api, scopes=[scope])
        for needed, (method, target, body) in requests.items():
            answer = closed.request(method, target, json=body, headers=headers)
            assert answer.status_code == (200 if needed == scope else 403), (scope, needed)
        # Whoever publishes needs to know what the stream holds, and a worker how long its leases are.
        assert closed.get(path, headers=headers).status_code == 200
        consumer = closed.get(f"{path}/consumers/billing", headers=headers)
        assert consumer.status_code == (403 if scope == "publish" else 200)


def test_a_refused_scope_comes_with_what_to_do(api: Api, closed: Api) -> None:
    refused = closed.request(
        "POST",
        f"/api/streams/{stream(api)}/messages",
        json={"messages": [{"data": 1}]},
        headers=header(api, scopes=["consume"]),
    ).json()
    assert refused["hint"].endswith('postbus token create NAME --scope "publish"')
    assert refused["advice"] == {"code": "scope_needed", "facts": {"scope": "publish"}}


def test_a_token_for_one_stream_cannot_see_guess_or_touch_another(api: Api, closed: Api) -> None:
    mine, other = stream(api), stream(api)
    other_id = api.data("GET", f"/api/streams/{other}")["id"]
    headers = header(api, scopes=["publish", "consume", "manage"], streams=[mine])

    assert [each["name"] for each in closed.data("GET", "/api/streams", headers=headers)] == [mine]
    assert closed.get(f"/api/streams/{mine}", headers=headers).status_code == 200
    answers = {
        name: closed.get(f"/api/streams/{name}", headers=headers)
        for name in (other, other_id, "never-was", "987654321")
    }
    for name, answer in answers.items():
        assert answer.status_code == 403
        assert answer.json()["summary"].replace(name, "X") == 'this token does not allow "manage" on stream "X"'
        for part in ("messages", "consumers", "consumers/billing/receive", "consumers/never/receive"):
            assert closed.get(f"/api/streams/{name}/{part}", headers=headers).status_code == 403
    assert closed.post("/api/streams", {"name": "mine-too"}, headers=headers).status_code == 403
    assert closed.get("/api/tokens", headers=headers).status_code == 403
    assert closed.get("/metrics", headers=headers).status_code == 403
    assert [each["name"] for each in closed.data("GET", "/api/overview", headers=headers)] == [mine]
    for upkeep in ("/api/sweep", "/api/maintain"):
        assert closed.post(upkeep, {"stream": mine}, headers=headers).status_code == 200
        assert closed.post(upkeep, {"stream": other}, headers=headers).status_code == 403
        assert closed.post(upkeep, {}, headers=headers).status_code == 403
    redrive = f"/api/streams/{mine}/consumers/billing/dead_letters/redrive"
    assert closed.post(redrive, {"to_stream": other}, headers=headers).status_code == 403


def test_a_token_pattern_matches_several_streams(api: Api, closed: Api) -> None:
    name = stream(api)
    assert closed.get(f"/api/streams/{name}", headers=header(api, streams=["x", f"{name[:6]}*"])).status_code == 200


def test_a_token_expires_and_can_be_revoked(api: Api, closed: Api) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()
    expiring = header(api, expires_at=soon)
    assert closed.get("/api/streams", headers=expiring).status_code == 200
    until(lambda: closed.get("/api/streams", headers=expiring).status_code == 401, "it expires")

    created = api.data("POST", "/api/tokens", {"name": "short", "scopes": ["manage"]})
    headers = {"authorization": f"Bearer {created['token']}"}
    assert closed.get("/api/streams", headers=headers).status_code == 200
    assert api.data("DELETE", f"/api/tokens/{created['id']}") == {"id": created["id"], "deleted": True}
    # Another process believes what it knows for a second.
    until(lambda: closed.get("/api/streams", headers=headers).status_code == 401, "it is revoked")
    assert api.request("DELETE", "/api/tokens/999999999").status_code == 404
    assert api.request("DELETE", "/api/tokens/none").status_code == 404


def test_tokens_go_by_sequins_name_too(api: Api, closed: Api) -> None:
    created = api.data("POST", "/api/api_keys", {"name": "of the shop"})
    header = {"authorization": f"Bearer {created['token']}"}

    assert created["id"] in [each["id"] for each in closed.data("GET", "/api/api_keys", headers=header)]
    assert closed.data("DELETE", f"/api/api_keys/{created['id']}", headers=header)["deleted"] is True
    assert closed.get("/api/api_keys", headers=header).status_code == 401


def test_a_token_that_is_used_too_often_is_429(api: Api, closed: Api) -> None:
    headers = header(api, rate_limit=0.1)
    answers = [closed.get("/api/streams", headers=headers) for _ in range(6)]
    limited = [answer for answer in answers if answer.status_code == 429]
    assert limited
    assert limited[0].json()["code"] == "rate_limited"
    assert int(limited[0].headers["retry-after"]) >= 1


def test_a_bucket_allows_a_burst_and_then_its_rate() -> None:
    bucket = Bucket(2, now=0.0)
    assert [bucket.take(0.0) for _ in range(3)] == [0, 0, 0.5]
    assert bucket.take(0.5) == 0
    assert bucket.take(0.5) == 0.5
    assert [bucket.take(100.0) for _ in range(3)] == [0, 0, 0.5]


@pytest.mark.parametrize(
    "wrong", [{"scopes": []}, {"scopes": ["all"]}, {"streams": ["a b"]}, {"rate_limit": 0}, {"name": "ü"}], ids=repr
)
def test_wrong_tokens_are_422(api: Api, wrong: dict[str, Any]) -> None:
    assert api.post("/api/tokens", {"name": "t", "scopes": ["manage"], **wrong}).status_code == 422


def test_only_loopback_is_open_by_default() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "")))
    assert not Settings(url="", host="0.0.0.0").is_open
    assert Settings(url="", host="0.0.0.0", insecure=True).is_open


def test_checking_a_token_asks_postgres_once_a_second(api: Api, closed: Api) -> None:
    headers = header(api)
    guard = closed.server.state.guard
    closed.get("/api/streams", headers=headers)
    _, until_time = guard._known[next(reversed(guard._known))]
    assert until_time - time.monotonic() <= 1


def test_a_list_of_all_consumers_has_those_of_the_tokens_streams(api: Api, closed: Api) -> None:
    mine, other = stream(api), stream(api)
    seen = closed.get("/api/consumers", headers=header(api, streams=[mine])).json()["data"]
    assert [(each["stream"], each["name"], each["backlog"]) for each in seen] == [(mine, "billing", 0)]
    everything = closed.get("/api/consumers", headers=header(api)).json()["data"]
    assert {mine, other} <= {each["stream"] for each in everything}
    assert closed.get("/api/consumers", headers=header(api, scopes=["publish"])).status_code == 403


def test_the_start_page_asks_for_no_token_and_tells_nothing_of_the_bus(api: Api, closed: Api) -> None:
    name = stream(api)
    page = closed.get("/", headers={"accept": "text/html"}, follow_redirects=True)
    assert page.status_code == 200
    assert "Log in to Postbus" in page.text
    assert name not in page.text
