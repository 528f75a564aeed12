"""What a change of settings would do, in words, before it is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from postbus.model.duration import as_timedelta
from postbus.model.settings import Setting
from postbus.model.stream import StreamInfo
from postbus.model.wording import counted
from postbus.server.console.parts import now
from postbus.server.console.visit import Visit

_KEEPS_ORDER: Final = (
    "Messages that are published from then on lie in {new} partitions. Consumers read the old ones to their end first, so keys "
    "stay in order."
)
_OF_CONSUMERS: Final[Mapping[str, str]] = {
    "ack_wait": "It holds for the deliveries to come. What is in flight keeps its lease.",
    "max_ack_pending": "If more are in flight now, nothing is given out until they are fewer.",
    "max_deliver": "A message that has had so many deliveries becomes a dead letter after its next failure.",
    "backoff": "Messages that wait now keep their time.",
    "filter": "It holds for what the consumer has not come to yet. What it has passed does not come again.",
    "retain_dead": "Dead letters that are older are removed by the next maintenance.",
    "keep_history": "Entries that are older are removed by the next maintenance; without it, all of them.",
    "ageing": "It holds for the next receive.",
}


async def of_stream(visit: Visit, info: StreamInfo, given: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
    """What a change of a stream's settings would do."""
    found = []
    if "partitions" in given:
        found.append(_KEEPS_ORDER.format(new=given["partitions"]))
    if given.get("retain_up_to") is not None:
        found.append(await _removed_by_age(visit, info, as_timedelta(given["retain_up_to"]) or timedelta()))
    if given.get("max_messages") is not None:
        many = max(0, info.message_estimate - given["max_messages"])
        found.append(_at_limit(given.get("when_full", info.when_full), many, "messages"))
    if given.get("max_storage") is not None and info.bytes > given["max_storage"]:
        share = 1 - given["max_storage"] / info.bytes
        found.append(_at_limit(given.get("when_full", info.when_full), round(info.message_estimate * share), "bytes"))
    if given.get("until_acked"):
        found.append("Messages that all consumers have finished are removed by the next maintenance.")
    if "max_message_bytes" in given:
        found.append("Larger messages are refused from then on. Those that are there stay.")
    if given.get("dedup_window") is not None:
        found.append("Ids of messages that were published before are not known, unless a window was set then.")
    if "retain_up_to" in unset or "max_messages" in unset or "max_storage" in unset:
        found.append("Without this limit, messages stay until another one removes them.")
    return found


def of_consumer(given: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
    """What a change of a consumer's settings would do."""
    return [words for name, words in _OF_CONSUMERS.items() if name in given or name in unset]


def rows(
    kind: Mapping[str, Setting], current: Mapping[str, Any], given: Mapping[str, Any], unset: Sequence[str]
) -> list[tuple[str, Any, Any]]:
    """Each setting that changes: its name, what it is, and what it becomes."""

    def as_shown(name: str, value: Any) -> Any:
        return as_timedelta(value) if name in kind and kind[name].kind == "duration" else value

    changed = {**given, **dict.fromkeys(unset)}
    return [(name, current.get(name), as_shown(name, value)) for name, value in changed.items()]


async def _removed_by_age(visit: Visit, info: StreamInfo, age: timedelta) -> str:
    """How many messages are older, by the seq of the first that is not: gaps in the seqs are not counted out."""
    page = await visit.bus.read(info.name, from_time=now() - age, max_messages=1)
    first = (page.messages[0].seq or 1) if page.messages else info.last_seq + 1
    older = min(max(0, first - max(1, info.start_seq)), info.message_estimate)
    if not older:
        return "No message is that old."
    return f"About {counted(older, 'message')} are older, and are removed by the next maintenance, segment by segment."


def _at_limit(when_full: str, many: int, what: str) -> str:
    if not many:
        return "The stream holds less than that."
    if when_full == "evict":
        return (
            f"It holds more {what}: about {counted(many, 'message')}, the oldest, are removed by the next maintenance."
        )
    return f"It holds more {what} than that: new messages are refused until there is room."
