from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_a_stream_keeps_the_settings_it_was_given(bus: Any, name: str) -> None:
    await bus.create_stream(
        name,
        partitions=3,
        data_type="text",
        max_message_bytes=1000,
        segment_bytes=1_000_000,
        segment_age=60,
        retain_up_to=timedelta(hours=2),
        retain_at_least=1.5,
        max_messages=77,
        max_storage=2_000_000,
        until_acked=True,
        when_full="refuse",
    )

    info = await bus.stream_info(name)

    assert (info.name, info.partitions, info.data_type) == (name, 3, "text")
    assert (info.max_message_bytes, info.segment_bytes) == (1000, 1_000_000)
    assert info.segment_age == timedelta(minutes=1)
    assert (info.retain_up_to, info.retain_at_least) == (timedelta(hours=2), timedelta(seconds=1.5))
    assert (info.max_messages, info.max_storage) == (77, 2_000_000)
    assert (info.until_acked, info.when_full, info.is_full) == (True, "refuse", False)
    assert datetime.now(UTC) - info.created_at < timedelta(minutes=1)


async def test_settings_are_changed_and_unset(bus: Any, name: str) -> None:
    await bus.create_stream(name, retain_up_to=60, max_messages=5)

    await bus.alter_stream(name, max_message_bytes=2000, when_full="refuse", unset=("retain_up_to",))

    info = await bus.stream_info(name)
    assert (info.max_message_bytes, info.when_full) == (2000, "refuse")
    assert (info.retain_up_to, info.max_messages) == (None, 5)
    with pytest.raises(postbus.InvalidInput, match="cannot be unset"):
        await bus.alter_stream(name, unset=("partitions",))


async def test_streams_are_listed_and_dropped(bus: Any, stream: str) -> None:
    assert stream in [info.name for info in await bus.list_streams()]

    await bus.drop_stream(stream)

    assert stream not in [info.name for info in await bus.list_streams()]
    with pytest.raises(postbus.NotFound):
        await bus.stream_info(stream)


async def test_purging_moves_the_start(bus: Any, stream: str) -> None:
    seqs = [await bus.publish(stream, data=number) for number in range(3)]

    assert await bus.purge(stream, before_seq=seqs[1]) == seqs[1]
    assert [message.seq for message in await bus.read(stream)] == seqs[1:]

    await bus.purge(stream, everything=True)
    assert not await bus.read(stream)
    with pytest.raises(postbus.InvalidInput):
        await bus.purge(stream)


async def test_the_horizon_shows_who_holds_it(bus: Any, stream: str, connect: Any) -> None:
    seq = await bus.publish(stream, data=1)
    open_connection = connect(autocommit=False, application_name="slow")
    open_connection.execute("select postbus.publish(%s, 'k', '2')", [stream])

    assert await bus.horizon(stream) == seq
    (holder,) = await bus.horizon_holders(stream)
    assert (holder.application_name, holder.held_at_seq) == ("slow", seq)
    assert holder.transaction_started_at is not None

    open_connection.rollback()
    assert await bus.horizon_holders(stream) == []


async def test_the_overview_shows_current_figures_of_all_streams(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", order="none")
    last = [await bus.publish(stream, key="k", data=number) for number in range(3)][-1]
    await billing.receive()

    (shown,) = [each for each in await bus.overview() if each.name == stream]
    assert (shown.last_seq, shown.consumer_count, shown.bytes) == (last, 1, None)
    (sized,) = [each for each in await bus.overview(sizes=True) if each.name == stream]
    assert sized.bytes is not None
    assert (sized.message_estimate, sized.scheduled, sized.next_scheduled_at) == (3, 0, None)
    (consumer,) = await bus.consumer_overview(stream)
    assert (consumer.stream, consumer.name, consumer.order, consumer.in_flight) == (stream, "billing", "none", 1)
    assert (consumer.backlog, consumer.backlog_is_exact, consumer.lag_estimate) == (3, True, 2)
    assert consumer.oldest_in_flight_at is not None
    assert [each for each in await bus.consumer_overview() if each.stream == stream] == [consumer]
    with pytest.raises(postbus.NotFound):
        await bus.consumer_overview("nobody-made-this")


async def test_pipelines_and_archives_are_known(bus: Any, stream: str, sql: Any) -> None:
    begin = "select postbus_data.begin_pipeline(%s, 'archive', %s, null, '{}')"
    sql.execute(begin, [f"archive {stream}", stream])

    (pipeline,) = [each for each in await bus.list_pipelines() if each.stream == stream]
    assert (pipeline.name, pipeline.kind, pipeline.state) == (f"archive {stream}", "archive", "running")
    assert datetime.now(UTC) - pipeline.started_at < timedelta(minutes=1)
    assert pipeline.ended_at is None
    assert await bus.archive_info(stream) is None
    with pytest.raises(postbus.NotFound):
        await bus.archive_info("nobody-made-this")


async def test_sweeps_and_maintenance_can_be_requested(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", ack_wait=0.01)
    await bus.publish(stream, data=1)
    await billing.receive()

    async def swept() -> int:
        count: int = await bus.sweep(stream)
        return count

    while not await swept():
        pass
    assert await bus.maintain(stream) == 0


async def test_stream_errors_have_their_own_classes(bus: Any, stream: str, name: str) -> None:
    with pytest.raises(postbus.Conflict, match="exists"):
        await bus.create_stream(stream)
    with pytest.raises(postbus.InvalidInput):
        await bus.create_stream("no spaces")
    with pytest.raises(postbus.InvalidInput, match="partitions"):
        await bus.create_stream(f"{name}-2", partitions=0)
    with pytest.raises(postbus.NotFound, match="does not exist"):
        await bus.drop_stream("nobody-made-this")
    with pytest.raises(postbus.NotFound):
        await bus.alter_stream("nobody-made-this", max_messages=5)
    with pytest.raises(postbus.NotFound):
        await bus.create_consumer("nobody-made-this", "billing")


async def test_the_number_of_partitions_can_be_changed(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2)
    consumer = await bus.create_consumer(name, "c")
    await bus.publish(name, key="a", data=1)
    await bus.alter_stream(name, partitions=5)
    await bus.publish(name, key="a", data=2)

    assert (await bus.stream_info(name)).partitions == 5
    for expected in (1, 2):
        batch = await consumer.receive(1, wait=5)
        assert [delivery.data for delivery in batch] == [expected]
        await consumer.ack(batch)


async def test_creating_what_exists_is_accepted_if_its_settings_are_those_that_are_given(bus: Any, name: str) -> None:
    for _ in range(2):
        await bus.create_stream(name, partitions=4, retain_up_to=3600, exist_ok=True)
        await bus.create_consumer(name, "billing", max_deliver=3, backoff=[1, 2], filter="a.>", exist_ok=True)
        await bus.create_group(name, "readers", keep_unread=True, exist_ok=True)
        await bus.create_queue(f"{name}-q", max_deliver=7, exist_ok=True)
    await bus.publish(name, key="a.b", data=1)
    await bus.consumer(name, "billing").receive()

    # What was not given may have been altered since, and where it stands stays.
    await bus.alter_stream(name, max_messages=10)
    await bus.create_stream(name, exist_ok=True)
    await bus.create_consumer(name, "billing", exist_ok=True)
    assert (await bus.stream_info(name)).max_messages == 10
    assert (await bus.consumer(name, "billing").stats()).in_flight == 1


async def test_creating_what_exists_with_other_settings_says_which_and_changes_nothing(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=4, retain_up_to=3600)
    await bus.create_consumer(name, "billing", max_deliver=3)
    await bus.create_group(name, "readers")
    await bus.create_queue(f"{name}-q")

    with pytest.raises(postbus.Conflict, match="partitions is 4, not 2; retain_up_to is 01:00:00, not 02:00:00"):
        await bus.create_stream(name, partitions=2, retain_up_to=7200, exist_ok=True)
    with pytest.raises(postbus.Conflict, match="max_deliver is 3, not 5"):
        await bus.create_consumer(name, "billing", max_deliver=5, exist_ok=True)
    with pytest.raises(postbus.Conflict, match=r"filter_key_pattern is none, not a\.>"):
        await bus.create_consumer(name, "billing", filter="a.>", exist_ok=True)
    with pytest.raises(postbus.Conflict, match=r'group "readers" of stream ".*" already exists'):
        await bus.create_consumer(name, "readers", order="partition", exist_ok=True)
    with pytest.raises(postbus.Conflict, match=r'consumer "billing" of stream ".*" already exists'):
        await bus.create_group(name, "billing", exist_ok=True)
    with pytest.raises(postbus.Conflict, match="max_deliver is none, not 2"):
        await bus.create_queue(f"{name}-q", max_deliver=2, exist_ok=True)
    with pytest.raises(postbus.Conflict, match="until_acked is false, not true"):
        await bus.create_queue(name, exist_ok=True)
    assert (await bus.stream_info(name)).partitions == 4
    assert (await bus.consumer(f"{name}-q", f"{name}-q").info()).max_deliver is None


async def test_several_may_create_the_same_at_once(bus: Any, name: str) -> None:
    await asyncio.gather(*(bus.create_queue(name, max_deliver=3, exist_ok=True) for _ in range(8)))
    assert [info.name for info in await bus.list_consumers(name)] == [name]
