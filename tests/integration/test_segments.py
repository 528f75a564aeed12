"""The log is a list of tables: new ones are begun, old ones dropped, and publishers never notice."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


@pytest.fixture
def plain(url: str, name: str) -> Any:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=3, segment_bytes=65536)
        yield bus


def fill(bus: postbus.Bus, stream: str, count: int = 100) -> list[postbus.Seq]:
    return bus.publish_many(stream, [Message(key=f"k{n}", data={"n": n, "x": "a" * 1000}) for n in range(count)])


def segments(connection: psycopg.Connection[Any], bus: postbus.Bus, stream: str) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select number, after_seq, last_seq, sealed_at is not null from postbus_data.segment where stream_id = %s order by 1",
        (bus.stream_info(stream).id,),
    ).fetchall()


def test_a_full_segment_is_followed_by_the_next_and_sealed(plain: postbus.Bus, name: str, sql: Any) -> None:
    first = fill(plain, name)
    assert plain.maintain(name) == 3  # Prepare, advance, seal.
    second = fill(plain, name)

    assert segments(sql, plain, name) == [(1, 0, first[-1], True), (2, first[-1], None, False)]
    assert [m.seq for m in plain.scan(name)] == first + second
    assert [m.seq for m in plain.scan(name, backwards=True, page_size=30)] == (first + second)[::-1]


def test_nothing_happens_while_a_segment_is_neither_full_nor_old(plain: postbus.Bus, name: str, sql: Any) -> None:
    plain.publish(name, data=1)
    assert plain.maintain(name) == 0
    assert len(segments(sql, plain, name)) == 1


def test_a_stream_without_bounds_keeps_its_segment_for_a_day_or_256_megabytes(url: str, name: str, sql: Any) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        fill(bus, name, 500)
        sql.execute(
            "update postbus_data.segment set prepared_at = prepared_at - interval '1 hour' where stream_id = %s",
            (bus.stream_info(name).id,),
        )
        assert bus.maintain(name) == 0


@pytest.mark.parametrize("bound", [{"until_acked": True}, {"max_messages": 10}])
def test_a_stream_that_keeps_few_messages_has_small_segments(url: str, name: str, bound: dict[str, Any]) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name, data_type="bytes", **bound)
        bus.create_consumer(name, "c", order="none")
        message = Message(data=random.Random(1).randbytes(1024 * 1024))
        bus.publish_many(name, [message] * 8)
        bus.maintain(name)
        assert bus.stream_info(name).segment_count == 1

        bus.publish_many(name, [message] * 8)
        bus.maintain(name)
        assert bus.stream_info(name).segment_count == 2


def test_an_old_segment_is_followed_by_the_next_and_an_empty_one_never(plain: postbus.Bus, name: str, sql: Any) -> None:
    plain.alter_stream(name, segment_age=1)
    sql.execute(
        "update postbus_data.segment set prepared_at = prepared_at - interval '1 hour' where stream_id = %s",
        (plain.stream_info(name).id,),
    )
    assert plain.maintain(name) == 0
    plain.publish(name, data=1)
    assert plain.maintain(name) == 3
    assert len(segments(sql, plain, name)) == 2


def test_a_publisher_that_began_before_the_roll_is_read_in_order(
    plain: postbus.Bus, name: str, sql: Any, connect: Any
) -> None:
    """Its messages may lie in the old segment with higher seqs than the first of the new one."""
    fill(plain, name)
    late = connect(autocommit=False)
    late.execute("select postbus.publish(%s, 'late', '1')", (name,))
    plain.maintain(name)
    new = fill(plain, name, 10)
    late.execute("select postbus.publish(%s, 'late', '2')", (name,))

    assert plain.maintain(name) == 0  # The old segment cannot be sealed yet.
    assert [m.seq for m in plain.scan(name)] == list(range(1, 101))
    late.commit()
    assert [m.seq for m in plain.scan(name)] == list(range(1, 113))
    assert [m.data for m in plain.scan(name, key="late")] == [1, 2]
    assert plain.maintain(name) >= 1
    assert [m.seq for m in plain.scan(name, from_seq=99)] == list(range(99, 113))
    assert new[0] == 102


def test_only_one_segment_is_left_open_behind_the_current_one(
    plain: postbus.Bus, name: str, sql: Any, connect: Any
) -> None:
    fill(plain, name)
    late = connect(autocommit=False)
    late.execute("select postbus.publish(%s, 'late', '1')", (name,))
    plain.maintain(name)
    fill(plain, name)
    plain.maintain(name)

    assert [row[0] for row in segments(sql, plain, name)] == [1, 2]
    late.commit()
    plain.maintain(name)
    assert [row[0] for row in segments(sql, plain, name)] == [1, 2, 3]
    assert len(list(plain.scan(name))) == 201


def test_a_publisher_with_an_old_snapshot_writes_to_the_new_segment(
    plain: postbus.Bus, name: str, sql: Any, connect: Any
) -> None:
    """It cannot see the segment's row, so the register that names it must not be a row."""
    old = connect(autocommit=False)
    old.execute("set transaction isolation level repeatable read")
    old.execute("select 1")
    fill(plain, name)
    plain.maintain(name)
    old.execute("select postbus.publish(%s, 'old', '1')", (name,))
    old.commit()

    info = plain.stream_info(name)
    assert sql.execute(f"select count(*) from postbus_data.log_{info.id}_2").fetchone() == (1,)
    assert [m.data for m in plain.scan(name, key="old")] == [1]


def test_the_register_is_not_moved_in_the_transaction_that_prepares_a_segment(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    """Other publishers could not see the new table yet."""
    fill(plain, name)
    maintenance = connect(autocommit=False)
    assert maintenance.execute("select postbus.maintain(%s), postbus.maintain(%s)", (name, name)).fetchone() == (1, 0)
    plain.publish(name, key="k", data="meanwhile")
    maintenance.rollback()
    plain.publish(name, key="k", data="after")
    assert [m.data for m in plain.scan(name, key="k")] == ["meanwhile", "after"]


def test_a_roll_waits_for_no_publisher_and_blocks_none(plain: postbus.Bus, name: str, connect: Any) -> None:
    fill(plain, name)
    reader, publisher, maintenance = connect(autocommit=False), connect(autocommit=False), connect(autocommit=False)
    reader.execute("select count(*) from postbus.read(%s)", (name,))
    publisher.execute("select postbus.publish(%s, 'k', '1')", (name,))
    maintenance.execute("set local lock_timeout = '1s'")
    maintenance.execute("select postbus.maintain(%s)", (name,))
    other = connect()
    other.execute("set lock_timeout = '1s'")
    other.execute("select postbus.publish(%s, 'k', '2')", (name,))
    other.execute("select count(*) from postbus.read(%s)", (name,))


def test_purged_segments_are_dropped_and_their_space_freed(plain: postbus.Bus, name: str, sql: Any) -> None:
    for _ in range(3):
        fill(plain, name)
        plain.maintain(name)
    assert plain.stream_info(name).segment_count == 4
    plain.purge(name, before_seq=201)
    plain.maintain(name)

    assert [row[0] for row in segments(sql, plain, name)] == [3, 4]
    assert [m.seq for m in plain.scan(name)] == list(range(201, 301))
    plain.purge(name, everything=True)
    plain.maintain(name)
    assert plain.stream_info(name).segment_count == 1
    assert plain.stream_info(name).bytes < 65536


def test_a_reader_in_a_long_transaction_delays_a_drop_and_blocks_no_other_session(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    fill(plain, name)
    plain.maintain(name)
    fill(plain, name, 1)
    reader = connect(autocommit=False)
    reader.execute("select count(*) from postbus.read(%s)", (name,))
    plain.purge(name, before_seq=101)
    plain.maintain(name)
    assert plain.stream_info(name).segment_count == 2

    reader.commit()
    plain.maintain(name)
    assert plain.stream_info(name).segment_count == 1


def test_maintenance_runs_one_at_a_time_and_the_other_returns_at_once(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    fill(plain, name)
    running = connect(autocommit=False)
    assert running.execute("select postbus.maintain(%s)", (name,)).fetchone() == (1,)
    assert plain.maintain(name) == 0
    running.commit()
    assert plain.maintain(name) == 2


def test_a_restored_register_that_is_ahead_of_the_tables_is_mended(plain: postbus.Bus, name: str, sql: Any) -> None:
    fill(plain, name)
    info = plain.stream_info(name)
    sql.execute("select postbus_data.set_layout(%s, 2, 0, 3)", (info.id,))
    with pytest.raises(postbus.Error):
        plain.publish(name, data=1)
    plain.maintain(name)
    plain.publish(name, data=1)
    assert len(list(plain.scan(name))) == 101


def test_maintain_without_a_name_serves_every_stream_that_needs_it(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        for number in range(3):
            bus.create_stream(f"s{number}", segment_bytes=65536)
        fill(bus, "s0")
        fill(bus, "s2")
        bus.maintain()
        assert [info.segment_count for info in bus.list_streams()] == [2, 1, 2]


def test_publishers_readers_and_maintenance_run_together_without_loss(url: str, plain: postbus.Bus, name: str) -> None:
    done = threading.Event()
    failures: list[BaseException] = []
    seen: list[int] = []

    def guarded(work: Any) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
                done.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def publish(publisher: int) -> None:
        for n in range(60):
            plain.publish_many(
                name, [Message(key=f"p{publisher}", data=[publisher, 20 * n + i, "x" * 300]) for i in range(20)]
            )

    def maintain() -> None:
        while not done.is_set():
            plain.maintain(name)

    def read() -> None:
        resume = None
        while True:
            last_round = done.is_set()
            page = plain.read(name, max_messages=500, resume=resume)
            seen.extend(m.seq or 0 for m in page)
            if page.resume is None and last_round:
                return
            resume = page.resume or resume

    publishers = [guarded(lambda p=p: publish(p)) for p in range(4)]
    others = [guarded(maintain), guarded(read)]
    for thread in publishers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()

    assert failures == []
    assert seen == sorted(set(seen))
    assert len(seen) == 4 * 60 * 20
    assert plain.stream_info(name).segment_count > 1
