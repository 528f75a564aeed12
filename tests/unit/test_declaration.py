"""A file for `postbus apply` is read with care: what is wrong in it is named, with its place."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.model import toml
from postbus.model.declaration import read, read_text, settings_of_kind
from postbus.model.settings import ConsumerSettings, StreamSettings, settings_of


def test_every_setting_may_be_declared() -> None:
    assert settings_of_kind("stream").keys() == settings_of(StreamSettings).keys()
    assert settings_of_kind("consumer").keys() == settings_of(ConsumerSettings).keys()
    assert settings_of_kind("queue").keys() == (
        settings_of(StreamSettings).keys() | settings_of(ConsumerSettings).keys()
    ) - {"until_acked"}


def test_amounts_are_read_as_people_write_them() -> None:
    text = '[streams.a]\nretain_up_to = "7d"\nmax_storage = "1.5G"\nsegment_age = 90\n'
    (stream,) = read_text(text, "bus.toml").declared
    assert stream.settings["retain_up_to"] == timedelta(days=7)
    assert stream.settings["segment_age"] == timedelta(seconds=90)
    assert stream.settings["max_storage"] == 1.5 * 2**30


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[stream.a]", 'there is no table "stream"', 'did you mean "streams"?'),
        ("[streams.a]\npartition = 4", '[streams.a]: there is no setting "partition"', 'did you mean "partitions"?'),
        ("[streams.a]\nmax-messages = 4", 'there is no setting "max-messages"', 'did you mean "max_messages"?'),
        (
            "[streams.a.consumer.c]",
            '[streams.a]: there is no setting "consumer"',
            'did you mean "consumers"?',
        ),
        (
            "[streams.a.consumers.c]\nmax_delivery = 4",
            '[streams.a.consumers.c]: there is no setting "max_delivery"',
            'did you mean "max_deliver"?',
        ),
        ("[streams.a.groups.g]\nack_wait = 4", '[streams.a.groups.g]: there is no setting "ack_wait"', "known are"),
        ("[queues.a]\nuntil_acked = false", 'there is no setting "until_acked"', ""),
        ("[streams.a]\npartitions = 5000", "[streams.a.partitions]: 5000 is more than 1024", ""),
        ("[streams.a]\npartitions = '4'", '"4" is not a whole number', ""),
        ("[streams.a]\nuntil_acked = 1", "1 is not true or false", ""),
        ("[streams.a]\nretain_up_to = 'soon'", '"soon" is not a duration', "30s"),
        ("[streams.a]\nretain_up_to = '1ms'", '"1ms" is less than 1s', ""),
        ("[streams.a]\nwhen_full = 'drop'", '"drop" is not one of evict, refuse', ""),
        ("[streams.a.consumers.c]\nstart = 'now'", "is not one of earliest, latest", ""),
        ("[streams.a.consumers.c]\nfilter = { keys = 'a' }", 'it has no part "keys"', 'did you mean "key"?'),
        ("[streams.a.consumers.c]\nbackoff = 5", "5 is not a list of delays", ""),
        ("[streams.'a b']", '"a b" is not a name', "letters"),
        ("[streams]\na = 1", "1 is not a table", "[streams.a]"),
        ("[streams.a]\n[queues.a]", '"a" is a stream too', ""),
        ("[streams.a.consumers.c]\n[streams.a.groups.c]", "has a consumer of that name", ""),
        ("[streams.a", "bus.toml is not valid TOML", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(postbus.InvalidInput) as caught:
        read_text(text, "bus.toml")
    assert caught.value.message.startswith("bus.toml")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(postbus.InvalidInput, match=r"no-such\.toml cannot be read"):
        read(tmp_path / "no-such.toml")


def test_what_is_written_can_be_read() -> None:
    table: dict[str, Any] = {
        "streams": {
            "consumers": {
                "partitions": 4,
                "consumers": {"c": {"filter": {"headers": {"a b": 'x"\n\u2192'}}, "backoff": ["1s", "2s"]}},
                "groups": {"g": {}},
            },
            "empty": {},
        },
        "queues": {"q": {"keep_unread": True}},
    }
    assert tomllib.loads(toml.dumps(table)) == table
