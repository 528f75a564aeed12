"""Webhook sources: what senders' own libraries sign is received, what is altered is refused, and bodies stay as they were."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import secrets
import time
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.server.senders import BODY, SECRET, SENDERS, Headers, Source, mac, now, signed_by_github, signed_by_slack
from tests.server.serving import Api, serving
from tests.waiting import until


@pytest.fixture
def stream(api: Api) -> str:
    name = f"events-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name, "dedup_window_ms": 3 * 86_400_000})
    return name


@pytest.mark.parametrize("sender", SENDERS)
def test_what_a_sender_has_signed_becomes_a_message_with_its_body_unchanged(
    api: Api, stream: str, sender: str, sql: Any
) -> None:
    kind, sign, more, key = SENDERS[sender]
    source = Source(api, stream, kind, **more)

    answer = source.send(BODY, sign(BODY))

    assert (answer.status_code, answer.json()) == (200, {"data": {"accepted": True, "duplicate": False}})
    (message,) = source.messages
    # The key's parts are tokens: dots within them are replaced.
    named, _, identity = (key or f"user.created.{hashlib.sha256(BODY).hexdigest()}").rpartition(".")
    assert message["key"] == f"{source.name}.{named.replace('.', '_')}.{identity}"
    ((data,),) = sql.execute("select m.data from postbus.read(%s) as m", (stream,)).fetchall()
    assert data.encode() == BODY
    assert "authorization" not in (message["headers"] or {})
    # The same event again is accepted, and not published again.
    assert source.send(BODY, sign(BODY)).json()["data"]["duplicate"] is True
    assert len(source.messages) == 1


SIGNATURES = {
    *(
        "webhook-signature",
        "webhook-timestamp",
        "webhook-id",
        "svix-signature",
        "svix-timestamp",
        "svix-id",
        "stripe-signature",
    ),
    *(
        "x-hub-signature-256",
        "x-slack-request-timestamp",
        "x-slack-signature",
        "x-shopify-hmac-sha256",
        "x-signature",
        "x-time",
    ),
    *("authorization", "x-token"),
}


@pytest.mark.parametrize("sender", SENDERS)
def test_what_was_altered_or_lacks_its_signature_is_refused(api: Api, stream: str, sender: str) -> None:
    kind, sign, more, _ = SENDERS[sender]
    source = Source(api, stream, kind, **more)
    signed = {name.lower(): value for name, value in sign(BODY).items()}
    if kind == "standard":
        name = next(each for each in signed if each.endswith("signature"))
        signed[name] = signed[name].split()[1]
    if kind == "stripe":
        time, _, signature, _ = signed["stripe-signature"].split(",")
        signed["stripe-signature"] = f"{time},{signature}"
    attempts: list[tuple[bytes, Headers]] = [(BODY, {})]
    if sender not in ("basic", "header"):
        attempts += [(BODY.replace(b"1.50", b"9.50"), signed), (BODY + b" ", signed), (b"", signed)]
    for name in SIGNATURES & signed.keys():
        value = signed[name]
        middle = len(value) // 2
        other = "A" if value[middle] not in "aA" else "B"
        altered = (
            f"{value[:middle]}{other}{value[middle + 1 :]}",
            "NaN",
            "Infinity",
            "1e99",
            "0",
            "v1,",
            "\u00e9\u00ff",
            "",
        )
        attempts += [(BODY, {**signed, name: each}) for each in altered]
    if any("time" in name or "stripe" in name for name in signed):
        attempts += [(BODY, sign(BODY, now() + late)) for late in (-400, 400)]

    for body, wrong in attempts:
        raw = {name.encode(): value.encode("latin-1") for name, value in wrong.items()}
        answer = api.client.post(f"{api.url}/api/webhook/{source.name}", content=body, headers=raw)
        assert answer.status_code == 401, (body, wrong, answer.text)
        assert answer.json()["summary"] == "the request is not signed as it should be"
    assert source.messages == []
    until(lambda: source.refusals, "the refusal is noted")
    assert source.refusals[0]["status"] == 401
    # Unaltered, it is accepted.
    assert source.send(BODY, signed).status_code == 200


def test_a_secret_is_replaced_without_refusing_anything(api: Api, stream: str) -> None:
    source = Source(api, stream, "github", secrets=["old"])

    def signed(secret: str, body: bytes) -> int:
        signature = hmac.new(secret.encode(), body, "sha256").hexdigest()
        headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-delivery": secrets.token_hex(4)}
        return int(source.send(body, headers).status_code)

    assert (signed("old", b"1"), signed("new", b"1")) == (200, 401)
    source.alter(secrets=["new", "old"])
    assert (signed("old", b"1"), signed("new", b"1")) == (200, 200)
    source.alter(secrets=["new"])
    assert (signed("old", b"1"), signed("new", b"1")) == (401, 200)
    assert "old" not in api.get(f"/api/webhook-sources/{source.name}").text


def test_what_is_no_json_is_kept_to_the_byte(api: Api, stream: str) -> None:
    source = Source(api, stream, "none")
    for body in (b"a=1&b=2", b"\xff\x00\xfe", b"", b'{"a":', b"[" * 5000 + b"]" * 5000, b"NaN"):
        assert source.send(body, {"content-type": "application/x-odd"}).status_code == 200
    kept = [base64.b64decode(each["data"]["body_base64"]) for each in source.messages]
    assert kept == [b"a=1&b=2", b"\xff\x00\xfe", b"", b'{"a":', b"[" * 5000 + b"]" * 5000, b"NaN"]
    assert {each["data"]["content_type"] for each in source.messages} == {"application/x-odd"}


@pytest.mark.parametrize(("data_type", "refused"), [("text", b"\xff"), ("bytes", None)])
def test_streams_of_text_and_bytes_keep_bodies_as_they_are(api: Api, data_type: str, refused: bytes | None) -> None:
    name = f"events-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name, "data_type": data_type})
    source = Source(api, name, "none", dedup=False, keep_headers=["content-type", "x-kept"])
    assert source.send(b"a=1", {"x-kept": "yes", "x-other": "no"}).status_code == 200
    if refused is not None:
        assert source.send(refused).status_code == 415
    (message,) = source.messages
    assert message["headers"]["x-kept"] == "yes"
    assert "x-other" not in message["headers"]


def test_a_packed_body_is_verified_packed_and_published_unpacked(api: Api, stream: str) -> None:
    source = Source(api, stream, "github", max_body_bytes=10_000)
    packed = gzip.compress(BODY)
    assert source.send(packed, {**signed_by_github(packed), "content-encoding": "gzip"}).status_code == 200
    assert source.messages[0]["data"]["type"] == "user.created"
    bomb = gzip.compress(b"0" * 1_000_000)
    assert source.send(bomb, {**signed_by_github(bomb), "content-encoding": "gzip"}).status_code == 413
    wrong = b"not packed"
    assert source.send(wrong, {**signed_by_github(wrong), "content-encoding": "gzip"}).status_code == 400
    assert source.send(wrong, {**signed_by_github(wrong), "content-encoding": "br"}).status_code == 415
    assert source.send(b"x" * 20_000).status_code == 413


def test_keys_follow_their_template(api: Api, stream: str) -> None:
    source = Source(api, stream, "none", key_template="shop.{json:/customer/id}.{header:x-region}.{json:/gone}")
    assert source.send(b'{"customer": {"id": "a.b c*>"}}', {"x-region": "eu"}).status_code == 200
    assert source.send(b'{"customer": {"id": 17}}', {"x-region": "." * 300}).status_code == 200
    first, second = source.messages
    assert first["key"] == "shop.a_b_c__.eu.none"
    assert second["key"].startswith("shop.17.___")
    assert len(second["key"]) <= 255


def test_the_rate_of_a_source_is_limited_and_a_paused_one_is_repeated_later(api: Api, stream: str) -> None:
    source = Source(api, stream, "none", max_rate=2)
    answers = [source.send(str(n).encode()) for n in range(5)]
    assert [each.status_code for each in answers[:2]] == [200, 200]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    source.alter(paused=True)
    assert (source.send(b"1").status_code, "retry-after" in source.send(b"1").headers) == (503, True)
    assert api.post("/api/webhook/nobody").status_code == 404


def test_what_cannot_be_stored_in_time_is_asked_for_again_and_counts_once(api: Api, stream: str, url: str) -> None:
    source = Source(api, stream, "github")
    body = b'{"number": 1}'
    headers = {**signed_by_github(body), "x-github-delivery": "the-first"}
    assert source.send(b"2", {**signed_by_github(b"2"), "x-github-delivery": "before"}).status_code == 200
    with psycopg.connect(url) as holder:
        (table,) = holder.execute(
            "select min(t.relname) from pg_class as t join postbus_data.stream as s on t.relname ~ ('^log_' || s.id || '_') "
            "where s.name = %s and t.relkind = 'r'",
            (stream,),
        ).fetchone() or ("",)
        holder.execute(SQL("lock table postbus_data.{} in access exclusive mode").format(Identifier(table)))
        begun = time.monotonic()
        late = source.send(body, headers)
        took = time.monotonic() - begun
    assert (late.status_code, late.headers["retry-after"]) == (503, "5")
    assert took < 3

    # GitHub would not, but others send it again.
    until(lambda: source.send(body, headers).status_code == 200, "it is stored")
    assert [each["data"] for each in source.messages].count({"number": 1}) == 1


def test_a_dedup_window_that_is_too_short_is_refused_with_what_to_do(api: Api) -> None:
    name = f"events-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name})
    answer = api.post("/api/webhook-sources", {"name": name, "stream": name, "kind": "stripe", "secrets": ["x"]})
    assert answer.status_code == 422
    assert "dedup" in answer.json()["summary"]
    assert "--dedup-window" in answer.json()["hint"]


def test_a_challenge_of_slack_is_answered_once_it_is_verified(api: Api, stream: str) -> None:
    source = Source(api, stream, "slack")
    body = b'{"type": "url_verification", "challenge": "3eZbrw1aB10"}'
    assert source.send(body).status_code == 401
    answer = source.send(body, signed_by_slack(body))
    assert (answer.status_code, answer.text) == (200, "3eZbrw1aB10")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    evil = b'{"type": "url_verification", "challenge": "<script>alert(1)</script>"}'
    assert source.send(evil, signed_by_slack(evil)).status_code == 400
    assert source.messages == []


def test_other_handshakes_are_answered_by_sources_that_say_so(api: Api, stream: str) -> None:
    meta = Source(api, stream, "github", options={"handshake": "meta", "verify_token": "t1"})
    query = "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    assert meta.send(b"", path=f"{query}t1", method="GET").text == "1158201444"
    assert meta.send(b"", path=f"{query}t2", method="GET").status_code == 403
    graph = Source(api, stream, "none", options={"handshake": "graph", "client_state": "s1"})
    assert graph.send(b"", path="?validationToken=Validation%3A%20Testing").text == "Validation: Testing"
    assert graph.send(b"", path="?validationToken=%3Cscript%3E").status_code == 400
    assert graph.send(b'{"value": [{"clientState": "s1"}]}').status_code == 200
    assert graph.send(b'{"value": [{"clientState": "s2"}]}').status_code == 401
    assert graph.send(b"[]").status_code == 401
    grid = Source(api, stream, "header", options={"handshake": "eventgrid", "header": "aeg-key"})
    code = b'[{"data": {"validationCode": "512d38b6"}}]'
    headers = {"aeg-event-type": "SubscriptionValidation", "aeg-key": SECRET}
    assert grid.send(code, headers).json() == {"validationResponse": "512d38b6"}
    assert grid.send(code, {**headers, "aeg-key": "x"}).status_code == 401
    events = Source(api, stream, "none", options={"handshake": "cloudevents"})
    allowed = events.send(b"", {"webhook-request-origin": "eventemitter.example.com"}, method="OPTIONS")
    assert allowed.headers["webhook-allowed-origin"] == "eventemitter.example.com"
    crc = Source(api, stream, "github", options={"handshake": "crc"})
    token = base64.b64encode(mac(SECRET.encode(), b"abc")).decode()
    assert crc.send(b"", path="?crc_token=abc", method="GET").json() == {"response_token": f"sha256={token}"}
    zoom = Source(api, stream, "none", options={"handshake": "zoom"})
    assert zoom.send(b'{"event": "endpoint.url_validation"}').status_code == 200
    # A source without a handshake echoes nothing.
    plain = Source(api, stream, "none")
    assert plain.send(b"", path="?challenge=x&hub.challenge=x&validationToken=x", method="GET").status_code == 400
    assert plain.send(b"x", path="?validationToken=x").json()["data"]["accepted"] is True


def test_a_stranger_learns_nothing_and_needs_no_token(url: str) -> None:
    with serving(url, require_tokens=True) as closed:
        assert closed.get("/api/webhook-sources").status_code == 401
        assert closed.post("/api/webhook-sources", {}).status_code == 401
        assert closed.post("/api/webhook/nobody").status_code == 404


def test_pages_of_other_sites_cannot_send_to_a_source_that_verifies_nobody(api: Api, stream: str) -> None:
    page = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    tunnel = {"host": "abc.tunnel.example"}
    plain, github = Source(api, stream, "none"), Source(api, stream, "github")
    assert plain.send(b"1", page).status_code == 403
    assert plain.send(b"1", tunnel).status_code == 403
    # Who signs is no page; tunnels bring requests by other names.
    assert github.send(BODY, {**signed_by_github(BODY), **tunnel}).status_code == 200
