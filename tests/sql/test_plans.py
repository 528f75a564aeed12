"""The statements of the hot path touch a handful of pages, whatever the size of the log and the state of its statistics."""

from __future__ import annotations

import json
import secrets
from typing import Any

import psycopg
import pytest

MESSAGES = 50_000
STATISTICS = ["missing", "fresh", "stale"]


@pytest.fixture(scope="module", params=STATISTICS)
def deep(request: pytest.FixtureRequest, url: str) -> Any:
    """A connection and a stream of 50,000 messages over two segments, with statistics of one kind."""
    # Beside tests of other folders, pytest may set it up more than once.
    stream = f"deep-{request.param}-{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select postbus.create_stream(%s, segment_bytes => 65536)", (stream,))
        table = connection.execute(
            "select 'postbus_data.log_' || id || '_' from postbus_data.stream where name = %s", (stream,)
        )
        log = table.fetchone()
        assert log is not None
        for half in (1, 2):
            connection.execute(f"alter table {log[0]}{half} set (autovacuum_enabled = off)")
            publish = (
                "select postbus.publish_many(%s, array_agg('orders.k' || g %% 1000), array_agg('{\"n\": ' || g || '}')) "
                "from generate_series(1, %s) as g"
            )
            if request.param == "stale":
                connection.execute(publish, (stream, 10))
                connection.execute(f"analyze {log[0]}{half}")
            for _ in range(5):
                connection.execute(publish, (stream, 5000))
            if request.param == "fresh":
                connection.execute(f"analyze {log[0]}{half}")
            if half == 1:
                for _ in range(3):
                    connection.execute("select postbus.maintain(%s)", (stream,))
        yield connection, stream


@pytest.fixture(scope="module")
def busy(deep: Any) -> Any:
    """The same, with a consumer that has read all, and has 10,000 messages in its redelivery log."""
    connection, stream = deep
    connection.execute(
        "select postbus.create_consumer(%s, 'busy', ordering => 'none', max_ack_pending => 100000)", (stream,)
    )
    for _ in range(40):
        connection.execute(
            "select postbus.ack(%s, 'busy', array(select ack_id from postbus.receive(%s, 'busy', 5000)))",
            (stream, stream),
        )
    connection.execute("select postbus.replay(%s, 'busy', from_seq => 1, max_messages => 10000)", (stream,))
    for _ in range(10):
        connection.execute("select postbus.sweep(%s)", (stream,))
    counted = connection.execute(
        "select count(*) from postbus_data.due as d join postbus_data.consumer as c on c.id = d.consumer_id"
        " where c.stream_name = %s",
        (stream,),
    ).fetchone()
    assert counted == (10_000,)
    return connection, stream


def buffers(connection: psycopg.Connection[Any], statement: str, parameters: tuple[Any, ...]) -> int:
    """How many pages a call touches, in its functions too. The second call: the first fills the caches of the session."""
    for _ in range(2):
        row = connection.execute(f"explain (analyze, buffers, format json) {statement}".encode(), parameters).fetchone()
    assert row is not None
    plan = (json.loads(row[0]) if isinstance(row[0], str) else row[0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.parametrize("from_seq", [1, 20_000, 24_980, 25_050, 49_900])
@pytest.mark.parametrize("backwards", ["false", "true"])
def test_a_page_costs_the_same_anywhere_in_the_log(deep: Any, from_seq: int, backwards: str) -> None:
    connection, stream = deep
    statement = f"select count(*) from postbus.read(%s, from_seq => %s, to_seq => %s, backwards => {backwards})"
    # 100 messages over 8 partitions, one or two segments: the rows, their index entries, and the catalog.
    assert buffers(connection, statement, (stream, from_seq, from_seq + 99)) < 600


def test_the_first_and_the_newest_page_cost_little(deep: Any) -> None:
    connection, stream = deep
    assert buffers(connection, "select count(*) from postbus.read(%s)", (stream,)) < 900
    assert buffers(connection, "select count(*) from postbus.read(%s, backwards => true)", (stream,)) < 900


def test_a_time_is_found_by_bisection(deep: Any) -> None:
    connection, stream = deep
    statement = "select count(*) from postbus.read(%s, from_time => clock_timestamp() + interval '1 hour')"
    assert buffers(connection, statement, (stream,)) < 2500


def test_publishing_costs_the_same_whatever_the_depth(deep: Any) -> None:
    connection, stream = deep
    connection.execute("select postbus.create_stream(%s)", (f"{stream}-new",))
    connection.execute("select postbus.publish(%s, 'k', '1') from generate_series(1, 100)", (f"{stream}-new",))
    statement = "select postbus.publish(%s, 'k', '1')"
    shallow = buffers(connection, statement, (f"{stream}-new",))
    assert buffers(connection, statement, (stream,)) <= shallow + 8
    connection.execute("select postbus.drop_stream(%s)", (f"{stream}-new",))


def test_dead_rows_at_the_end_of_the_log_do_not_slow_a_page(deep: Any) -> None:
    """30,000 messages that were rolled back lie between the last page and the next message."""
    connection, stream = deep
    connection.execute("begin")
    for _ in range(6):
        connection.execute(
            "select postbus.publish_many(%s, data => array_agg('1'::text)) from generate_series(1, 5000)", (stream,)
        )
    connection.execute("rollback")
    connection.execute("select postbus.publish(%s, 'k', '1')", (stream,))
    statement = "select count(*) from postbus.read(%s, from_seq => 49990, max_messages => 11)"
    assert buffers(connection, statement, (stream,)) < 1500


@pytest.mark.parametrize("seq", [1, 9_900, 49_900])
def test_a_message_of_a_consumer_is_found_by_its_seq_at_the_same_cost_whatever_waits(busy: Any, seq: int) -> None:
    connection, stream = busy
    # A probe for each of 8 partitions, the tables of the consumer, and the catalog.
    assert buffers(connection, "select count(*) from postbus.peek_at(%s, 'busy', %s)", (stream, seq)) < 80
