"""Queues for clients of SQS on the command line, and key pairs of tokens."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server


def test_a_consumer_is_exposed_listed_and_hidden(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "billing")
    said = shell("sqs", "expose", "orders", "billing", "--as", "orders-billing", "--json")
    assert json.loads(said) == {"name": "orders-billing"}
    assert "orders-billing" in shell("sqs", "ls")

    (listed,) = shell.objects("sqs", "ls")
    assert (listed["stream"], listed["consumer"], listed["owns_stream"]) == ("orders", "billing", False)
    shell("sqs", "hide", "orders-billing", "--yes")

    assert shell.objects("sqs", "ls") == []


def test_a_token_comes_with_a_key_pair(shell: Shell) -> None:
    text, key, secret = shell("token", "create", "sqs", "--aws").splitlines()[:3]
    assert text.startswith("pb_")
    assert key.startswith("AWS_ACCESS_KEY_ID=PBUS")
    assert len(secret.removeprefix("AWS_SECRET_ACCESS_KEY=")) == 64

    found = json.loads(shell("token", "create", "other", "--aws", "--json"))
    assert found["access_key_id"] != key
    assert "access_key_id" not in json.loads(shell("token", "create", "plain", "--json"))
    assert found["secret_access_key"] not in shell("token", "ls", "--json")
