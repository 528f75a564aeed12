"""What the driver does with staged rows: COPY into the log, in one transaction, with a second connection that reads ahead."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pyarrow
import pytest
from pyspark.sql.datasource import WriterCommitMessage

import postbus
from postbus.db.session import Session
from postbus.spark import prefetch, staging
from postbus.spark.publishing import Staged
from postbus.spark.statements import SPARK_END_BATCH, SPARK_ENTER, SPARK_STAGED
from tests import pgbouncer
from tests.spark.staged import ROWS, batch, batches, execute, numbers, stage, stored, stream_id, writer_for
from tests.waiting import until


@pytest.fixture(autouse=True)
def _leave_nothing_staged(url: str) -> Iterator[None]:
    yield
    execute(url, "truncate postbus_data.spark_staging")


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Do something before the driver runs a statement for the first time; "copy" stands for COPY."""

    def register(statement: str, action: Callable[[], object]) -> None:
        run, copy, waiting = Session.rows, Session.copy_rows, [action]

        def rows(self: Session, text: str, *arguments: Any) -> Any:
            if text == statement and waiting:
                waiting.pop()()
            return run(self, text, *arguments)

        def copy_rows(self: Session, *arguments: Any) -> int:
            if statement == "copy" and waiting:
                waiting.pop()()
            return copy(self, *arguments)

        monkeypatch.setattr(Session, "rows", rows)
        monkeypatch.setattr(Session, "copy_rows", copy_rows)

    return register


@pytest.mark.parametrize("data_type", ["json", "text", "bytes"])
def test_copied_rows_are_those_that_publish_many_writes(
    bus: postbus.Bus, url: str, name: str, data_type: Literal["json", "text", "bytes"], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [batch(place * ROWS) for place in range(3)]
    if data_type == "bytes":
        frames = [each.set_column(1, "data", each.column("data").cast(pyarrow.binary())) for each in frames]
    for way in ("copied", "inserted"):
        bus.create_stream(f"{name}-{way}", partitions=4, data_type=data_type)
        if way == "inserted":
            monkeypatch.setattr(staging, "_is_plain", lambda chunk: False)
        writer = writer_for(url, f"{name}-{way}", data_type=data_type)
        staged = stage(writer, frames)
        assert staged.has_rows == (way == "copied")
        writer.commit([staged])

    copied = stored(url, f"{name}-copied")
    assert len(copied) == 3 * ROWS
    assert copied == stored(url, f"{name}-inserted")


def test_tasks_are_published_in_their_order_and_once(bus: postbus.Bus, url: str, stream: str) -> None:
    writer = writer_for(url, stream)
    first, second = stage(writer, batches(4)), stage(writer, [batch(4 * ROWS), batch(5 * ROWS, 10)])
    tasks: list[WriterCommitMessage | None] = [
        Staged(second.attempt, 1, second.count, None, True),
        Staged(first.attempt, 0, first.count, None, True),
    ]

    writer.commit(tasks)
    writer.commit(tasks)

    assert numbers(bus, stream) == list(range(5 * ROWS + 10))
    assert execute(url, "select count(*) from postbus_data.spark_staging") == [(0,)]


def test_chunks_that_copy_cannot_take_keep_their_place_among_the_others(
    bus: postbus.Bus, url: str, stream: str
) -> None:
    frames = batches(8)
    frames[4] = batch(
        4 * ROWS, headers=pyarrow.array([[("a", "b")]] * ROWS, pyarrow.map_(pyarrow.string(), pyarrow.string()))
    )
    writer = writer_for(url, stream)

    writer.commit([stage(writer, frames)])

    assert numbers(bus, stream) == list(range(8 * ROWS))
    assert sum(message.headers is not None for message in bus.scan(stream)) == ROWS


@pytest.mark.parametrize(
    ("key", "data", "said"),
    [
        ("a..b", "1", 'its key "a..b" has an empty token'),
        ("", "1", "empty"),
        ("a b", "1", "key"),
        ("x" * 256, "1", "key"),
        ("a", None, "its data is missing"),
        ("a", '"' + "x" * 2_000 + '"', "bytes of data"),
        ("a", "{", "invalid input syntax for type json.*ended unexpectedly.*JSON data"),
    ],
)
def test_one_invalid_message_among_thousands_is_refused(
    bus: postbus.Bus, url: str, stream: str, key: str, data: str | None, said: str
) -> None:
    bus.alter_stream(stream, max_message_bytes=1_000)
    wrong = pyarrow.record_batch({"key": ["a"] * ROWS + [key], "data": ["1"] * ROWS + [data]})
    writer = writer_for(url, stream)

    with pytest.raises((postbus.InvalidInput, postbus.TooLarge), match=said):
        writer.commit([stage(writer, [*batches(3), wrong])])

    assert numbers(bus, stream) == []


def test_messages_that_copy_cannot_publish_are_staged_as_arrays(bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, one_message_per_key=True)
    writer = writer_for(url, name)

    staged = stage(writer, [batch(key=["a", "b"] * (ROWS // 2))])
    writer.commit([staged])

    assert not staged.has_rows
    assert execute(url, f"select count(*) from postbus_data.state_{stream_id(url, name)}") == [(2,)]


@pytest.mark.parametrize("moment", [SPARK_STAGED, SPARK_ENTER, "copy"])
def test_when_staged_rows_are_gone_nothing_is_published_and_the_batch_can_be_run_again(
    bus: postbus.Bus, url: str, stream: str, before: Any, moment: str
) -> None:
    writer = writer_for(url, stream)
    staged = stage(writer, batches(6))
    before(moment, lambda: execute(url, "delete from postbus_data.spark_staging where chunk = 5"))

    with pytest.raises(postbus.Unavailable, match="staged messages are gone"):
        writer.commit([staged])

    assert numbers(bus, stream) == []
    writer.commit([stage(writer, batches(6))])
    assert numbers(bus, stream) == list(range(6 * ROWS))


def test_rows_staged_for_a_stream_that_was_replaced_are_not_published(bus: postbus.Bus, url: str, stream: str) -> None:
    writer = writer_for(url, stream)
    staged = stage(writer, batches(1))
    bus.drop_stream(stream)
    bus.create_stream(stream, data_type="bytes")

    with pytest.raises(postbus.Unavailable, match="belong to another stream of that name"):
        writer.commit([staged])

    assert list(bus.scan(stream)) == []


def test_a_driver_of_release_0_1_0_does_not_mistake_encoded_rows_for_an_empty_batch(
    bus: postbus.Bus, url: str, stream: str
) -> None:
    staged = stage(writer_for(url, stream), batches(1))

    with pytest.raises(psycopg.Error, match="a later release of Postbus than the driver"):
        execute(
            url,
            f"select postbus_data.spark_publish('{stream}', 'w', 0, null, false, '{{{staged.attempt}}}', '{{{ROWS}}}')",
        )

    assert list(bus.scan(stream)) == []


def test_numbers_that_do_not_follow_each_other_are_written_as_they_were_drawn(
    bus: postbus.Bus, url: str, stream: str
) -> None:
    execute(url, f"alter sequence postbus_data.seq_{stream_id(url, stream)} increment by 3")
    writer = writer_for(url, stream)

    writer.commit([stage(writer, batches(4))])

    assert [row[0] for row in stored(url, stream)] == [3 * place for place in range(1, 4 * ROWS + 1)]
    assert numbers(bus, stream) == list(range(4 * ROWS))


def test_publishers_that_come_between_lose_nothing_and_change_no_order(bus: postbus.Bus, url: str, stream: str) -> None:
    writer = writer_for(url, stream)
    staged = stage(writer, batches(30))
    is_over = threading.Event()

    def publish_on() -> int:
        count = 0
        while not is_over.is_set():
            bus.publish_many(stream, [postbus.Message(key="other", data={"n": -1}) for _ in range(10)])
            count += 10
        return count

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(publish_on)
        writer.commit([staged])
        is_over.set()

    found = [(message.seq, message.data["n"]) for message in bus.scan(stream)]
    assert [n for _, n in found if n >= 0] == list(range(30 * ROWS))
    assert len({seq for seq, _ in found}) == len(found) == 30 * ROWS + others.result()


def test_readers_stay_below_the_batch_until_it_is_committed(
    bus: postbus.Bus, url: str, stream: str, before: Any
) -> None:
    seen = []

    def look() -> None:
        until(lambda: all(each.name != "postbus-ahead" for each in threading.enumerate()), "the second connection ends")
        bus.publish(stream, data={"n": -1})
        seen.append(len(bus.read(stream)))

    before(SPARK_END_BATCH, look)
    writer = writer_for(url, stream)
    writer.commit([stage(writer, batches(5))])

    assert seen == [0]
    assert numbers(bus, stream) == [*range(5 * ROWS), -1]


def test_a_batch_continues_in_the_segment_that_is_begun_meanwhile(
    bus: postbus.Bus, url: str, stream: str, before: Any
) -> None:
    def begin_segment() -> None:
        until(lambda: execute(url, f"select postbus.maintain('{stream}')") and segment() == 2, "a new segment is begun")

    def segment() -> int:
        ((layout,),) = execute(url, f"select last_value from postbus_data.layout_{number}")
        return int(layout) >> 35

    number = stream_id(url, stream)
    execute(url, f"select postbus_data.repartition({number}, 7)")
    before("copy", begin_segment)
    writer = writer_for(url, stream)
    writer.commit([stage(writer, batches(10))])

    assert numbers(bus, stream) == list(range(10 * ROWS))
    bounds = f"select min(seq), max(seq), count(*), min(partition), max(partition) from postbus_data.log_{number}_"
    ((_, old_end, old_count, *old_partitions),) = execute(url, f"{bounds}1")
    ((new_start, _, new_count, *new_partitions),) = execute(url, f"{bounds}2")
    assert old_end < new_start
    assert old_count > 0 < new_count
    assert (old_partitions, new_partitions) == ([0, 3], [4, 10])


@contextmanager
def role(url: str, *rights: str) -> Iterator[str]:
    """The URL of a role that has these rights."""
    name = f"writer_{secrets.token_hex(4)}"
    execute(url, f"create role {name} login password 'x'")
    try:
        for right in rights:
            execute(url, right.format(name))
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        yield urlunsplit(parts._replace(netloc=f"{name}:x@{host}"))
    finally:
        execute(url, f"drop owned by {name}; drop role {name}")


def test_a_role_with_no_more_than_the_right_to_publish_publishes_through_functions(
    bus: postbus.Bus, url: str, stream: str
) -> None:
    with role(url, f"select postbus.grant_stream('{stream}', '{{}}', 'publish')") as restricted:
        writer = writer_for(restricted, stream)
        staged = stage(writer, batches(4))
        writer.commit([staged])
        assert execute(restricted, "select 1 where has_table_privilege('postbus_data.spark_staging', 'select')") == []

    assert not staged.has_rows
    assert numbers(bus, stream) == list(range(4 * ROWS))
    assert execute(url, "select count(*) from postbus_data.spark_staging") == [(0,)]


def test_a_role_that_may_not_publish_stages_and_publishes_nothing(bus: postbus.Bus, url: str, stream: str) -> None:
    with role(url, f"select postbus.grant_stream('{stream}', '{{}}', 'read')") as restricted:
        with pytest.raises(postbus.NotAllowed, match="may not publish"):
            stage(writer_for(restricted, stream), batches(4))
        staged = stage(writer_for(url, stream), batches(4))
        with pytest.raises(postbus.NotAllowed):
            writer_for(restricted, stream).commit([staged])

    assert numbers(bus, stream) == []


def test_a_batch_never_takes_what_was_staged_for_another_stream(bus: postbus.Bus, url: str, stream: str) -> None:
    other = f"{stream}-other"
    bus.create_stream(other)
    with role(url, f"select postbus.grant_stream('{stream}', '{{}}', 'publish')") as restricted:
        staged = stage(writer_for(url, other), batches(4))
        with pytest.raises(postbus.Error):
            writer_for(restricted, stream).commit([staged])

    assert numbers(bus, stream) == []


def test_where_a_role_has_one_connection_it_does_everything(bus: postbus.Bus, url: str, stream: str) -> None:
    rights = f"select postbus.grant_stream('{stream}', '{{}}', 'publish')", "alter role {} connection limit 1"
    with role(url, *rights) as restricted:
        writer = writer_for(restricted, stream)
        writer.commit([stage(writer, batches(4))])

    assert numbers(bus, stream) == list(range(4 * ROWS))


@pytest.mark.skipif(
    pgbouncer.program() is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)
@pytest.mark.parametrize("pool_size", [1, 3])
def test_behind_a_pooler_a_second_connection_is_not_waited_for(
    bus: postbus.Bus, url: str, stream: str, pool_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_PATIENCE_SECONDS", 0.5)
    with pgbouncer.running(url, pool_size=pool_size) as through:
        writer = writer_for(through, stream)
        writer.commit([stage(writer, batches(5))])

    assert numbers(bus, stream) == list(range(5 * ROWS))


def test_blocking_the_second_connection_does_not_block_the_first(
    bus: postbus.Bus, url: str, stream: str, before: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_PATIENCE_SECONDS", 0.5)
    waiting = "select count(*) from pg_locks where not granted and relation = 'postbus_data.spark_staging'::regclass"

    def get_in_line() -> None:
        pool.submit(execute, url, "begin; lock table postbus_data.spark_staging in access exclusive mode; commit")
        until(lambda: execute(url, waiting) != [(0,)], "somebody waits for a lock")

    writer = writer_for(url, stream)
    staged = stage(writer, batches(8))
    before("copy", get_in_line)
    with ThreadPoolExecutor(1) as pool:
        writer.commit([staged])

    assert numbers(bus, stream) == list(range(8 * ROWS))


def test_the_first_connection_continues_when_the_second_is_lost(
    bus: postbus.Bus, url: str, stream: str, before: Any
) -> None:
    def cut() -> None:
        found = execute(
            url,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where query like '%spark_place_rows%' and pid <> pg_backend_pid()",
        )
        assert found == [(True,)]

    before("copy", cut)
    writer = writer_for(url, stream)
    writer.commit([stage(writer, batches(8))])

    assert numbers(bus, stream) == list(range(8 * ROWS))


def test_when_the_first_connection_is_lost_the_batch_is_published_once_by_another(
    bus: postbus.Bus, url: str, stream: str, before: Any
) -> None:
    def cut() -> None:
        found = execute(
            url,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where query like 'copy %log_%' and pid <> pg_backend_pid()",
        )
        assert found == [(True,)]

    before(SPARK_END_BATCH, cut)
    writer = writer_for(url, stream)
    writer.commit([stage(writer, batches(8))])

    assert numbers(bus, stream) == list(range(8 * ROWS))
