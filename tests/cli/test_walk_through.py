"""`postbus consumer add` on a terminal: it asks for what is missing, and says at once what is wrong with an answer."""

from __future__ import annotations

from datetime import timedelta

import pytest

import postbus
from postbus.cli import options
from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server


@pytest.fixture
def terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(options, "can_ask", lambda: True)
    shell("stream", "add", "orders")
    shell("stream", "add", "invoices")
    return shell


def test_each_answer_is_checked_at_once_and_asked_for_again(terminal: Shell) -> None:
    answers = [
        *("fifo", "none"),
        *("5 minutes", "orders.>"),
        *("yesterday", "latest"),
        *("soon", "8d", "1m"),
        *("many", "0", "100"),
        *("-1", "5"),
        *("1s,often", "1s,10s"),
    ]
    said = terminal.run("consumer", "add", "orders", "walk", input="\n".join(answers) + "\n")
    for complaint in (
        '"fifo" is not one of key, none, partition',
        'key pattern "5 minutes" is not allowed; tokens are separated',
        '"yesterday" is not a time',
        '"soon" is not a duration; write it as 30s',
        "8d is not allowed; it is at most 7d",
        '"many" is not a number',
        "0 is not allowed; it is at least 1",
        '"often" is not a duration',
    ):
        assert complaint in said.err
    (made,) = terminal.objects("consumer", "ls", "orders")
    assert (made["order"], made["filter_key_pattern"], made["ack_wait"]) == ("none", "orders.>", 60.0)
    assert (made["max_ack_pending"], made["max_deliver"], made["backoff"]) == (100, 5, [1.0, 10.0])


def test_stream_and_name_are_asked_for_where_they_are_missing(terminal: Shell) -> None:
    terminal("consumer", "add", "orders", "taken", "--defaults")
    answers = ["ordres", "orders", "two words", "taken", "walk"]
    said = terminal.run("consumer", "add", "--defaults", input="\n".join(answers) + "\n")
    assert 'did you mean "orders"?' in said.err
    assert '"two words" is not a name' in said.err
    assert 'has a consumer "taken"' in said.err
    assert {each["name"] for each in terminal.objects("consumer", "ls", "orders")} == {"taken", "walk"}


def test_enter_takes_the_defaults(terminal: Shell) -> None:
    terminal.run("consumer", "add", "orders", "walk", input="\n" * 7)
    assert terminal.url is not None
    with postbus.connect(terminal.url) as bus:
        info = bus.consumer("orders", "walk").info()
    assert (info.order, info.ack_wait, info.max_deliver) == ("key", timedelta(seconds=30), None)


def test_without_a_terminal_what_is_missing_is_an_error(shell: Shell) -> None:
    with pytest.raises(postbus.InvalidInput, match="the stream is missing"):
        shell("consumer", "add")
    with pytest.raises(postbus.InvalidInput, match="the name of the consumer is missing"):
        shell("consumer", "add", "orders")
