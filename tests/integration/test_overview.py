"""Where streams and consumers stand, for those who look again and again."""

from __future__ import annotations

from typing import Any

import pytest

import postbus


async def test_the_overview_says_how_far_each_stream_is_and_what_it_holds_if_asked(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [postbus.Message(data=n) for n in range(10)])
    await bus.create_consumer(stream, "billing")
    (cheap,) = [each for each in await bus.overview() if each.name == stream]
    assert (cheap.last_seq, cheap.consumer_count, cheap.bytes, cheap.message_estimate) == (10, 1, None, None)
    (sized,) = [each for each in await bus.overview(sizes=True) if each.name == stream]
    assert sized.bytes == (await bus.stream_info(stream)).bytes > 0


async def test_the_overview_has_every_stream_once_however_many_pages_it_takes(bus: Any, sql: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-2")
    pages = []
    last = ""
    while page := sql.execute("select name from postbus.overview(%s, max_streams => 1)", (last,)).fetchall():
        pages.append(page[0][0])
        last = page[0][0]
    names = [each.name for each in await bus.overview()]
    assert pages == names == sorted(set(names))


async def test_the_overview_of_consumers_agrees_with_stats_and_counts_redeliveries(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", order="none")
    audit = await bus.create_consumer(stream, "audit")
    await audit.pause()
    for number in range(10):
        await bus.publish(stream, key=str(number), data=number)
    first = await billing.receive(4)
    await billing.nack([first[0]], delay=0)
    again = await billing.receive(1, wait=5)
    while again[0].attempt == 1:
        again = await billing.receive(1, wait=5)
    found = {each.name: each for each in await bus.consumer_overview(stream)}
    stats = await billing.stats()
    assert list(found) == ["audit", "billing"]
    assert (found["audit"].paused, found["audit"].lag_estimate > 0, found["audit"].in_flight) == (True, True, 0)
    assert found["billing"].in_flight == stats.in_flight >= 4
    assert found["billing"].redelivering == 1
    assert found["billing"].oldest_in_flight_at == stats.oldest_in_flight_at


async def test_the_overview_of_a_stream_that_does_not_exist_is_an_error(bus: Any) -> None:
    with pytest.raises(postbus.NotFound):
        await bus.consumer_overview("nowhere")
