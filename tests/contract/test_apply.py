"""What a file declares is made so: the same over Postgres and over HTTP."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.model import toml

pytestmark = pytest.mark.newest_server


def mine(changes: list[postbus.Change], name: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Of what was done, what concerns the test's own stream or queue."""
    return {each.path: (each.action, dict(each.settings)) for each in changes if each.stream == name}


def everything(name: str) -> dict[str, Any]:
    return {
        "streams": {
            name: {
                "partitions": 4,
                "retain_up_to": "30d",
                "max_storage": "10G",
                "consumers": {
                    "billing": {
                        "filter": {"key": "orders.>", "headers": {"kind": "paid"}, "data": "$.amount > 5"},
                        "backoff": ["1s", "10s"],
                        "max_deliver": 5,
                        "start": "latest",
                    },
                    "slow": {"backoff": {"first": "1s", "factor": 3, "cap": "1m", "jitter": 0.5}, "filter": "orders.*"},
                },
                "groups": {"readers": {"keep_unread": True}},
            }
        }
    }


async def test_what_is_declared_is_created_and_applying_it_again_changes_nothing(bus: Any, name: str) -> None:
    first = mine(await bus.apply(everything(name)), name)
    assert {path: action for path, (action, _) in first.items()} == dict.fromkeys(
        [name, f"{name}/billing", f"{name}/slow", f"{name}/readers"], "create"
    )
    assert first[name][1] == {"partitions": (8, 4), "retain_up_to": (None, "30d"), "max_storage": (None, "10G")}

    info = await bus.stream_info(name)
    assert (info.partitions, info.retain_up_to, info.max_storage) == (4, timedelta(days=30), 10 * 2**30)
    billing, readers, slow = await bus.list_consumers(name)
    assert (billing.filter_key_pattern, billing.filter_data) == ("orders.>", '($."amount" > 5)')
    assert list(billing.backoff) == [timedelta(seconds=1), timedelta(seconds=10)]
    assert (slow.backoff_factor, slow.backoff_cap, slow.backoff_jitter) == (3, timedelta(minutes=1), 0.5)
    assert (readers.is_group, readers.keep_unread) == (True, True)

    again = mine(await bus.apply(everything(name)), name)
    assert [action for action, _ in again.values()] == ["same"] * 4


async def test_differences_are_shown_and_altered_also_back_to_defaults(bus: Any, name: str) -> None:
    await bus.apply(everything(name))
    changed = {
        "streams": {
            name: {
                "partitions": 4,
                "when_full": "refuse",
                "max_messages": 100,
                "consumers": {"billing": {"filter": {"data": "$.amount > 7"}}, "slow": {"backoff": ["2s"]}},
                "groups": {"readers": {"expire_after": "1d"}},
            }
        }
    }

    planned = mine(await bus.apply(changed, dry_run=True), name)
    assert (await bus.stream_info(name)).max_messages is None
    done = mine(await bus.apply(changed), name)
    assert planned == done
    assert done[name] == (
        "change",
        {
            "retain_up_to": ("30d", None),
            "max_messages": (None, 100),
            "max_storage": ("10G", None),
            "when_full": ("evict", "refuse"),
        },
    )
    assert done[f"{name}/billing"][1]["filter"] == (
        {"key": "orders.>", "headers": {"kind": "paid"}, "data": '($."amount" > 5)'},
        {"data": "$.amount > 7"},
    )
    assert done[f"{name}/readers"] == ("change", {"keep_unread": (True, False), "expire_after": (None, "1d")})
    billing, _, slow = await bus.list_consumers(name)
    assert (billing.filter_key_pattern, billing.filter_headers, billing.filter_data) == (None, None, '($."amount" > 7)')
    assert (list(billing.backoff), billing.max_deliver) == ([], None)
    assert (list(slow.backoff), slow.backoff_factor, slow.backoff_jitter) == ([timedelta(seconds=2)], None, 0)
    assert [action for action, _ in mine(await bus.apply(changed), name).values()] == ["same"] * 4


async def test_a_queue_is_made_altered_and_exported(bus: Any, name: str) -> None:
    wanted = {"queues": {name: {"max_deliver": 5}}}
    assert mine(await bus.apply(wanted), name)[name] == ("create", {"max_deliver": (None, 5)})
    info, (consumer,) = await bus.stream_info(name), await bus.list_consumers(name)
    assert (info.until_acked, info.partitions, consumer.order, consumer.max_deliver) == (True, 1, "none", 5)

    wanted["queues"][name] |= {"max_message_bytes": 1000, "ack_wait": 60}
    assert mine(await bus.apply(wanted), name)[name] == (
        "change",
        {"max_message_bytes": ("8M", 1000), "ack_wait": ("30s", "1m")},
    )
    exported = await bus.export()
    assert exported["queues"][name] == {"max_message_bytes": 1000, "ack_wait": "1m", "max_deliver": 5}


async def test_what_is_exported_applies_as_the_same(bus: Any, name: str, tmp_path: Path) -> None:
    await bus.apply(everything(name))
    file = tmp_path / "bus.toml"
    file.write_text(toml.dumps(await bus.export()))

    changes = await bus.apply(file, dry_run=True)
    assert {each.action for each in changes if each.stream == name} == {"same"}


async def test_what_is_not_declared_is_named_and_left_alone(bus: Any, name: str) -> None:
    await bus.apply(everything(name))

    changes = mine(await bus.apply({"streams": {name: {"partitions": 4}}}), name)
    assert {path: action for path, (action, _) in changes.items()} == {
        name: "change",
        f"{name}/billing": "unlisted",
        f"{name}/readers": "unlisted",
        f"{name}/slow": "unlisted",
    }
    assert mine(await bus.apply({}), name)[name] == ("unlisted", {})
    assert len(await bus.list_consumers(name)) == 3


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"data_type": "text"}, "data_type of stream .* cannot be changed from json to text"),
        ({"consumers": {"billing": {"order": "none"}}}, "order of consumer .*/billing.* from key to none"),
        ({"consumers": {"readers": {}}}, "a group of that name exists"),
    ],
)
async def test_what_cannot_be_altered_is_refused_before_anything_is_done(
    bus: Any, name: str, table: dict[str, Any], said: str
) -> None:
    await bus.create_stream(name)
    await bus.create_consumer(name, "billing")
    await bus.create_group(name, "readers")

    with pytest.raises(postbus.Conflict, match=said) as caught:
        await bus.apply({"streams": {name: {"max_messages": 10, **table}}})
    assert "remove" in (caught.value.hint or "")
    assert (await bus.stream_info(name)).max_messages is None


async def test_two_that_apply_at_once_do_not_fail(bus: Any, name: str) -> None:
    await asyncio.gather(*[bus.apply(everything(name)) for _ in range(4)])
    assert len(await bus.list_consumers(name)) == 3
    other = {"streams": {name: {"partitions": 4}}}
    await asyncio.gather(*[bus.apply(other) for _ in range(4)])
    assert (await bus.stream_info(name)).retain_up_to is None


async def test_a_consumer_may_name_a_stream_that_the_file_declares_later(bus: Any, name: str) -> None:
    wanted = {
        "streams": {
            name: {"consumers": {"billing": {"max_deliver": 1, "dead_letters_to": f"{name}-dead"}}},
            f"{name}-dead": {},
        }
    }
    await bus.apply(wanted)
    assert (await bus.list_consumers(name))[0].dead_letters_to == f"{name}-dead"
    assert mine(await bus.apply(wanted), name)[f"{name}/billing"] == ("same", {})
    del wanted["streams"][name]["consumers"]["billing"]["dead_letters_to"]
    await bus.apply(wanted)
    assert (await bus.list_consumers(name))[0].dead_letters_to is None
