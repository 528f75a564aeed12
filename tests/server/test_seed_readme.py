"""Sequin's curl lines of 2024 work as they were printed: placeholders filled in, quotes balanced."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.server.serving import Api

UUID = "68658e3e-de48-4005-a5de-2a7cd6868d80"

# As in the README, but for the host, a missing quote behind {token} and one before the URL of receive.
SEND = r"""
curl -X 'POST' -d '{"messages":[{"data":"{ \"quantity\": 4 }","key":"orders.cus_a.ord_1jNsd"}, {"data":"{ \"quantity\": 4 }","key":"orders.cus_a.ord_1jNsd"}]}' \
-H 'Content-Type: application/json' \
-H 'Authorization: Bearer {token}' \
'https://[sequin-base-url]/api/streams/68658e3e-de48-4005-a5de-2a7cd6868d80/messages'
"""  # noqa: E501
RECEIVE = "curl -X 'GET' 'https://[sequin-base-url]/api/streams/mystream/consumers/mycon/receive?batch_size=10'"
SETTLE = (
    """curl -X 'POST' -d '{"ack_ids":["ack_1jdiQuj"]}' -H 'Content-Type: application/json' """
    """'https://[sequin-base-url]/api/streams/mystream/consumers/mycon/VERB'"""
)
PEEK = (
    "curl -X 'GET' 'https://<sequin-base-url>/api/streams/<stream>/consumers/<consumer_name>/messages"
    "?limit=10&sort=seq_desc&visible=true'"
)

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def curl(api: Api, line: str, placeholders: dict[str, str]) -> Any:
    for host in ("https://[sequin-base-url]", "https://<sequin-base-url>"):
        line = line.replace(host, api.url)
    for placeholder, value in placeholders.items():
        line = line.replace(placeholder, value)
    done = subprocess.run(
        ["bash", "-c", line.replace("curl ", "curl -sS -g ", 1)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_curl_lines_of_the_seed_readme(api: Api) -> None:
    stream, consumer = "mystream", "mycon"
    for name in (UUID, stream):
        api.request("DELETE", f"/api/streams/{name}")
        api.data("POST", "/api/streams", {"name": name})
    api.data("POST", f"/api/streams/{stream}/consumers", {"name": consumer, "filter_key_pattern": "orders.>"})

    published = curl(api, SEND, {"{token}": "any"})
    assert published["data"]["published"] == 2
    curl(api, SEND, {"{token}": "any", UUID: stream})

    received = curl(api, RECEIVE, {})["data"]
    assert [each["message"]["data"] for each in received] == ['{ "quantity": 4 }'] * 2
    assert {each["message"]["key"] for each in received} == {"orders.cus_a.ord_1jNsd"}

    first, second = (each["ack_id"] for each in received)
    assert curl(api, SETTLE, {"VERB": "ack", "ack_1jdiQuj": first}) == {"success": True}
    assert curl(api, SETTLE, {"VERB": "nack", "ack_1jdiQuj": second}) == {"success": True}

    (peeked,) = curl(api, PEEK, {"<stream>": stream, "<consumer_name>": consumer})["data"]
    assert peeked["message"]["seq"] == received[1]["message"]["seq"]
    assert peeked["info"]["state"] == "available"
