"""With tokens on, requests are signed with the key pair of a token, and may do what it allows."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import httpx
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import postbus
from postbus.model.token import NewToken
from tests.server.serving import Api, serving
from tests.sqs.clients import PROTOCOLS, client
from tests.sqs.reading import drain, refused
from tests.waiting import until


@pytest.fixture(scope="module")
def closed(url: str) -> Iterator[Api]:
    """A server that asks for tokens."""
    with serving(url, require_tokens=True) as api:
        yield api


def a_pair(native: postbus.Bus, **settings: Any) -> NewToken:
    return native.tokens.create("sqs", aws=True, **settings)


def client_of(api: Api, token: NewToken, protocol: str = "json") -> Any:
    return client(api.url, protocol, key=token.access_key_id or "", secret=token.secret_access_key or "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_signed_request_does_what_its_token_allows(closed: Api, native: postbus.Bus, protocol: str) -> None:
    name = f"team-{secrets.token_hex(5)}"
    manager = client_of(closed, a_pair(native), protocol)
    queue = manager.create_queue(QueueName=name)["QueueUrl"]
    sender = client_of(closed, a_pair(native, scopes=["publish"], streams=["team-*"]), protocol)
    receiver = client_of(closed, a_pair(native, scopes=["consume"], streams=["team-*"]), protocol)
    stranger = client_of(closed, a_pair(native, streams=["other-*"]), protocol)
    denied = "AccessDenied"

    sender.send_message(QueueUrl=queue, MessageBody="a/b?c=ü&d")

    assert sender.get_queue_url(QueueName=name)["QueueUrl"] == queue
    assert refused(receiver.send_message, QueueUrl=queue, MessageBody="x")[0].startswith(denied)
    assert refused(sender.receive_message, QueueUrl=queue)[0].startswith(denied)
    assert refused(sender.purge_queue, QueueUrl=queue)[0].startswith(denied)
    assert refused(sender.create_queue, QueueName=f"team-{secrets.token_hex(5)}")[0].startswith(denied)
    for asked in (queue, f"{queue}-nobody"):
        assert refused(stranger.receive_message, QueueUrl=asked)[0].startswith(denied)
    assert queue not in stranger.list_queues().get("QueueUrls", [])
    assert drain(receiver, queue) == ["a/b?c=ü&d"]


def test_a_wrong_secret_key_or_none_is_refused(closed: Api, native: postbus.Bus) -> None:
    token = a_pair(native)
    unknown = "InvalidClientTokenId"
    for key, secret, code in (
        (token.access_key_id, "wrong", "SignatureDoesNotMatch"),
        ("AKIAIOSFODNN7EXAMPLE", token.secret_access_key, unknown),
        (token.text, token.secret_access_key, unknown),
    ):
        sqs = client(closed.url, key=key or "", secret=secret or "")
        assert refused(sqs.list_queues)[0] == code
    answer = httpx.post(closed.url, json={}, headers={"x-amz-target": "AmazonSQS.ListQueues"})
    assert (answer.status_code, answer.headers["x-amzn-query-error"]) == (403, "MissingAuthenticationToken;Sender")


def test_a_revoked_or_expired_token_signs_nothing(closed: Api, native: postbus.Bus, sql: Any) -> None:
    token, old = a_pair(native), a_pair(native, expires_at=datetime.now(UTC) + timedelta(seconds=1))
    sqs = client_of(closed, token)
    sqs.list_queues()

    native.tokens.revoke(token.token.id)

    until(lambda: _is_refused(sqs), "the server notices within a second")
    until(lambda: _is_refused(client_of(closed, old)), "it expires")
    row = sql.execute("select t.aws_secret from postbus_data.token as t where t.id = %s", (token.token.id,)).fetchone()
    assert row == (None,)


def _is_refused(sqs: Any) -> bool:
    try:
        sqs.list_queues()
    except sqs.exceptions.ClientError as error:
        return bool(error.response["Error"]["Code"] == "InvalidClientTokenId")
    return False


def signed(api: Api, token: NewToken, headers: dict[str, str], body: bytes = b"{}") -> AWSRequest:
    request = AWSRequest("POST", f"{api.url}/", headers=headers, data=body)
    pair = Credentials(token.access_key_id or "", token.secret_access_key or "")
    SigV4Auth(pair, "sqs", "eu-central-1").add_auth(request)
    return request


def test_what_was_signed_cannot_be_altered_or_kept(closed: Api, native: postbus.Bus) -> None:
    token = a_pair(native)
    request = signed(closed, token, {"x-amz-target": "AmazonSQS.ListQueues"})
    headers = dict(request.headers)
    unsigned = dict(signed(closed, token, {}).headers)

    def status(body: bytes, headers: dict[str, str], query: str = "") -> int:
        return httpx.post(f"{closed.url}/{query}", content=body, headers=headers).status_code

    assert status(b"{}", headers) == 200
    assert status(b'{"MaxResults":1}', headers) == 403
    assert status(b"{}", headers, "?a=b") == 403
    assert status(b"{}", {**headers, "x-amz-target": "AmazonSQS.CreateQueue"}) == 403
    assert status(b"{}", {**unsigned, "x-amz-target": "AmazonSQS.ListQueues"}) == 403
    assert status(b"{}", {**headers, "X-Amz-Date": "20200101T000000Z"}) == 403
    assert status(b"{}", {**headers, "X-Amz-Date": "20209901T000000Z"}) == 403
    assert status(b"{}", {**headers, "Authorization": headers["Authorization"].replace("/sqs/", "/s3/")}) == 403


def test_a_presigned_request_is_verified(closed: Api, native: postbus.Bus) -> None:
    token = a_pair(native)
    pair = Credentials(token.access_key_id or "", token.secret_access_key or "")

    def presigned(seconds: int) -> str:
        request = AWSRequest("POST", f"{closed.url}/?Action=ListQueues", data=b"")
        SigV4QueryAuth(pair, "sqs", "eu-central-1", expires=seconds).add_auth(request)
        return str(request.url)

    assert httpx.post(presigned(60)).status_code == 200
    assert httpx.post(presigned(60).replace("ListQueues", "ListQueue")).status_code == 403
    assert httpx.post(presigned(60) + "0").status_code == 403


def test_a_token_itself_is_taken_too(closed: Api, native: postbus.Bus) -> None:
    headers = {"x-amz-target": "AmazonSQS.ListQueues", "authorization": f"Bearer {a_pair(native).text}"}

    assert httpx.post(closed.url, json={}, headers=headers).status_code == 200
    assert httpx.post(closed.url, json={}, headers={**headers, "authorization": "Bearer x"}).status_code == 403


def test_too_many_requests_are_throttled(closed: Api, native: postbus.Bus) -> None:
    sqs = client_of(closed, a_pair(native, rate_limit=1))
    sqs.list_queues()

    assert refused(sqs.list_queues)[0] == "RequestThrottled"


def test_the_secret_is_shown_once_and_listed_nowhere(api: Api, native: postbus.Bus) -> None:
    with postbus.connect(api.url) as bus:
        created = bus.tokens.create("sqs", scopes=["publish"], aws=True)
        assert (created.access_key_id or "").startswith("PBUS")
        assert len(created.secret_access_key or "") == 64
        listed = api.get("/api/tokens").text
        plain = bus.tokens.create("plain")
    assert str(created.secret_access_key) not in listed
    assert str(created.access_key_id) not in listed
    assert (plain.access_key_id, plain.secret_access_key) == (None, None)
    assert repr(native.tokens.list_all()).find(created.secret_access_key or "-") == -1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"user-agent": "Mozilla/5.0 (compatible; pycurl)"}, 200),
        ({"user-agent": "Mozilla/5.0 (X11; Linux x86_64)", "origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "evil.example"}, 403),
    ],
)
def test_an_open_server_takes_signed_requests_and_none_of_other_pages(
    api: Api, native: postbus.Bus, headers: dict[str, str], status: int
) -> None:
    request = signed(api, a_pair(native), {"x-amz-target": "AmazonSQS.ListQueues"})

    answer = httpx.post(api.url, content=b"{}", headers={**dict(request.headers), **headers})

    assert answer.status_code == status


def test_a_form_of_another_page_is_refused(api: Api) -> None:
    headers = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64)"}

    answer = httpx.post(api.url, data={"Action": "ListQueues"}, headers=headers)

    assert answer.status_code == 403


def test_the_wire_can_be_turned_off(url: str) -> None:
    with serving(url, sqs=False) as api:
        answer = httpx.post(api.url, json={}, headers={"x-amz-target": "AmazonSQS.ListQueues"})

    assert answer.status_code == 405


def test_boto3_is_told_where_the_server_is_by_the_environment(
    api: Api, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", api.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    resource = boto3.resource("sqs").get_queue_by_name(QueueName=queue.rpartition("/")[2])
    resource.send_message(MessageBody="x")

    assert [message.body for message in resource.receive_messages()] == ["x"]
