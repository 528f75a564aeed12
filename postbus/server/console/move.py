"""What moving a consumer's position would do: how many messages come again, and how many are skipped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from postbus.model.consumer import ConsumerInfo, Start
from postbus.model.wording import counted
from postbus.operations import consumers as operations
from postbus.server.console.visit import Visit

# Up to so many messages are counted, and beyond it is an estimate.
_MOST_COUNTED: Final = 2_000


async def effect_of(
    visit: Visit, info: ConsumerInfo, start: Start | None, from_seq: int | None, from_time: datetime | None
) -> str:
    """The effect in words. Nothing is changed."""
    stream = await visit.bus.stream_info(info.stream)
    stats = await visit.run(operations.stats(info.stream, info.name))
    if start == "earliest":
        target = stream.start_seq or 1
    elif start == "latest":
        target = stream.last_seq + 1
    elif from_seq is not None:
        target = from_seq
    else:
        page = await visit.bus.read(info.stream, from_time=from_time, max_messages=1)
        target = (page.messages[0].seq or 1) if page.messages else stream.last_seq + 1
    positions = {each.partition: each.position_seq for each in stats.partitions}
    again, again_is_exact = await _between(
        visit, info.stream, positions, target, max(positions.values(), default=0), above=False
    )
    skipped, skipped_is_exact = await _between(
        visit, info.stream, positions, min(positions.values(), default=0) + 1, target - 1, above=True
    )
    words = [f"The position moves to seq {target:,}."]
    if again:
        words.append(f"{_about(again, is_exact=again_is_exact)} would be delivered again.")
    if skipped:
        words.append(f"{_about(skipped, is_exact=skipped_is_exact)} would be skipped.")
    if not again and not skipped:
        words.append("No message would come again, and none would be skipped.")
    if info.filter_key_pattern or info.filter_headers or info.filter_headers_not or info.filter_data:
        words.append("The consumer's filter may leave some of them out.")
    if stats.in_flight:
        words.append("Acks of messages in flight no longer count.")
    return " ".join(words)


async def _between(
    visit: Visit, stream: str, positions: Mapping[int, int], low: int, high: int, *, above: bool
) -> tuple[int, bool]:
    """How many messages of a range lie above, or up to, the position of their partition, and whether they were counted."""
    if low > high or not positions:
        return 0, True
    page = await visit.bus.read(stream, from_seq=max(1, low), to_seq=high, max_messages=_MOST_COUNTED)
    # The last page has a token too, and behind it there is nothing.
    following = await visit.bus.read(stream, to_seq=high, max_messages=1, resume=page.resume) if page.resume else ()
    if not following:
        return sum(((each.seq or 0) > positions.get(each.partition or 0, 0)) is above for each in page), True
    # As if seqs were spread evenly over the partitions.
    ranges = ((max(low, at + 1), high) if above else (low, min(high, at)) for at in positions.values())
    return sum(max(0, last - first + 1) for first, last in ranges) // len(positions), False


def _about(number: int, *, is_exact: bool) -> str:
    return counted(number, "message") if is_exact else f"About {counted(number, 'message')}"
