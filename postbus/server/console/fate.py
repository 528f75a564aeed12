"""What became of a message: for each consumer its deliveries, failures and waits, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import written_duration
from postbus.model.consumer import ConsumerInfo, ConsumerStats, HistoryEntry, Peeked
from postbus.model.message import Message
from postbus.operations import consumers as operations
from postbus.server.console.parts import Tone, ago, badge, duration, link, moment, until
from postbus.server.console.stored import as_stored
from postbus.server.console.visit import Visit

_MOST_CONSUMERS: Final = 50
# How far back the history of a consumer is searched for one message.
_PAGE_OF_HISTORY: Final = 1_000
_MOST_HISTORY: Final = 5_000
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a message for one consumer.

    Attributes:
        consumer: The consumer.
        peeked: How it sees the message; None if it is done with it, or never wanted it.
        deliveries: What its history knows of the message's deliveries, the oldest first.
        is_read: It is a group, and has read past the message.
    """

    consumer: ConsumerInfo
    peeked: Peeked | None
    deliveries: Sequence[HistoryEntry] = field(default=())
    is_read: bool | None = None


async def of_message(visit: Visit, stream: str, seq: int, message: Message | None) -> list[Fate]:
    """The fates of a message. Consumers that know nothing of one that is gone are left out."""
    readers = (await visit.bus.list_consumers(stream))[:_MOST_CONSUMERS]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(consumer: ConsumerInfo) -> Fate:
        async with limit:
            return await _of_consumer(visit, consumer, seq, message)

    fates = await asyncio.gather(*map(one, readers))
    return [each for each in fates if message is not None or each.peeked is not None or each.deliveries]


async def _of_consumer(visit: Visit, consumer: ConsumerInfo, seq: int, message: Message | None) -> Fate:
    stream = consumer.stream
    if consumer.is_group:
        stats = await visit.bus.group(stream, consumer.name).stats()
        return Fate(consumer, None, is_read=_is_read(stats, seq, message))
    peeked = await visit.run(as_stored(operations.peek_at(stream, consumer.name, seq)))
    published = message.published_at if message is not None else None
    deliveries = await _history(visit, consumer, seq, published) if consumer.keep_history is not None else []
    return Fate(consumer, peeked, deliveries)


async def _history(visit: Visit, consumer: ConsumerInfo, seq: int, published: datetime | None) -> list[HistoryEntry]:
    """Its deliveries of the message, from the newest backwards, no further than the message is old."""
    found: list[HistoryEntry] = []
    before: datetime | None = None
    for _ in range(_MOST_HISTORY // _PAGE_OF_HISTORY):
        call = operations.history(
            consumer.stream, consumer.name, outcome=None, before_time=before, max_messages=_PAGE_OF_HISTORY
        )
        page = await visit.run(as_stored(call))
        found += [each for each in page if each.seq == seq]
        if len(page) < _PAGE_OF_HISTORY or (published is not None and page[-1].finished_at < published):
            break
        if found and found[-1].attempt == 1:
            break
        before = page[-1].finished_at
    return found[::-1]


def _is_read(stats: ConsumerStats, seq: int, message: Message | None) -> bool | None:
    if message is None:
        return None
    for each in stats.partitions:
        if each.partition == message.partition:
            return each.position_seq >= seq
    return None


def shown(visit: Visit, stream: str, fates: Sequence[Fate]) -> Html:
    """A timeline for each consumer."""
    if not fates:
        return tag("p", "No consumer reads this stream.", class_="soft")
    return join(*(_one(visit, stream, each) for each in fates))


def _one(visit: Visit, stream: str, fate: Fate) -> Html:
    word, tone, why = _in_words(fate)
    steps = [_step(each) for each in fate.deliveries]
    steps.append(tag("li", badge(word, tone), " ", *why))
    note = None
    if (
        not fate.deliveries
        and fate.peeked is None
        and not fate.consumer.is_group
        and fate.consumer.keep_history is None
    ):
        note = tag("p", "Deliveries are not kept. Set keep_history on the consumer to see them here.", class_="soft")
    return tag(
        "section",
        tag("h3", link(fate.consumer.name, visit.to("streams", stream, "consumers", fate.consumer.name))),
        tag("ol", *steps, class_="timeline"),
        note,
        id=f"c-{fate.consumer.name}",
    )


def _step(entry: HistoryEntry) -> Html:
    tone: Tone = {"acked": "good", "failed": "warn", "dead": "bad"}[entry.outcome]  # type: ignore[assignment]
    error = join(": ", tag("q", entry.last_error)) if entry.last_error and entry.outcome != "acked" else ""
    took = written_duration(round(entry.duration.total_seconds(), 3))
    return tag(
        "li",
        badge(entry.outcome, tone),
        f" attempt {entry.attempt}, received ",
        moment(entry.received_at),
        f", took {took}",
        error,
    )


def _in_words(fate: Fate) -> tuple[str, Tone, list[object]]:
    """How it stands now: a word, and why."""
    consumer, peeked = fate.consumer, fate.peeked
    if consumer.is_group:
        return {
            True: ("read", "good", ["the group has claimed past it"]),
            False: ("unread", "", ["the group has not come to it yet"]),
            None: ("unknown", "soft", ["its partition is not the group's any more"]),
        }[fate.is_read]  # type: ignore[return-value]
    if peeked is None:
        if fate.deliveries and fate.deliveries[-1].outcome == "acked":
            return "done", "good", []
        return "done", "good", ["acked, or skipped by its filter, a seek or its time to live"]
    reason = [" Last error: ", tag("q", peeked.reason)] if peeked.reason else []
    attempts = f"attempt {peeked.attempts}" + (f" of {consumer.max_deliver}" if consumer.max_deliver else "")
    if peeked.state == "dead":
        return "dead", "bad", [f"given up after {attempts}.", *reason]
    if peeked.state == "delivered":
        return (
            "delivered",
            "good",
            [
                f"{attempts}, received ",
                ago(peeked.last_delivered_at),
                " ago; its lease ends ",
                until(peeked.until),
                ".",
                *reason,
            ],
        )
    if peeked.state == "waiting":
        if peeked.until is not None:
            deferred = f", deferred {peeked.deferrals} times" if peeked.deferrals else ""
            return (
                "waiting",
                "warn",
                [f"{attempts}{deferred}; it is delivered again ", until(peeked.until), ".", *reason],
            )
        return "waiting", "warn", ["parked behind an earlier message of its key.", *reason]
    why = "the consumer is paused" if consumer.paused else "nobody has received it yet"
    return "available", "", [why, f"; a lease lasts {duration(consumer.ack_wait)}" if not consumer.paused else ""]
