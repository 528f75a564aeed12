"""The SQL of push consumers: when an endpoint rests, who may send, and what is kept of attempts."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

import postbus


@pytest.fixture
def consumer_id(url: str, name: str, sql: psycopg.Connection[Any]) -> int:
    """A consumer with an endpoint."""
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        consumer = bus.create_consumer(name, "hook")
        consumer.push.set("https://example.com/")
        return consumer.info().id


def asked(sql: psycopg.Connection[Any], statement: str, *values: Any) -> Any:
    row = sql.execute(statement.encode(), values).fetchone()
    return None if row is None else row[0] if len(row) == 1 else row


def report(sql: psycopg.Connection[Any], consumer_id: int, **fields: Any) -> tuple[float, bool]:
    """For how many seconds the endpoint rests then, and whether it is paused."""
    found: tuple[float, bool] = asked(
        sql,
        "select r.rest_seconds, r.is_paused from postbus_data.report_push(%s, %s) as r",
        consumer_id,
        json.dumps(fields),
    )
    return found


def failing(seq: int) -> dict[str, Any]:
    return {"failures": 1, "failed_seqs": [seq], "error": "answered 500"}


def test_five_failures_in_a_row_of_different_messages_make_it_rest(
    sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    for _ in range(8):
        # A message that always fails is one message.
        assert report(sql, consumer_id, **failing(1))[0] == 0
    report(sql, consumer_id, successes=20)
    for seq in (1, 2, 3, 4):
        assert report(sql, consumer_id, **failing(seq))[0] == 0
    assert 3.9 < report(sql, consumer_id, **failing(5))[0] < 6.1


def test_half_of_ten_requests_that_fail_make_it_rest_though_others_succeed(
    sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    for turn in range(4):
        assert report(sql, consumer_id, **failing(turn), successes=1)[0] == 0
    assert report(sql, consumer_id, **failing(9), successes=1)[0] > 0


def test_the_third_time_that_it_cannot_be_reached_makes_it_rest(sql: psycopg.Connection[Any], consumer_id: int) -> None:
    unreachable = {**failing(1), "unreachable": 1}
    assert [report(sql, consumer_id, **unreachable)[0] > 0 for _ in range(3)] == [False, False, True]


def test_rests_grow_to_five_minutes_and_a_success_of_the_probe_ends_them(
    sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    report(sql, consumer_id, failures=5, failed_seqs=[1, 2, 3, 4, 5], error="x")
    rests = [report(sql, consumer_id, **failing(1), is_probe=True)[0] for _ in range(8)]
    for rest, usual in zip(rests, (10, 20, 40, 80, 160, 300, 300, 300), strict=True):
        assert 0.75 * usual < rest < 1.25 * usual
    assert report(sql, consumer_id, successes=1, is_probe=True) == (0, False)
    # It begins anew.
    assert report(sql, consumer_id, failures=5, failed_seqs=[1, 2, 3, 4, 5], error="x")[0] < 6.1


def test_late_failures_of_other_processes_do_not_lengthen_a_rest(
    sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    first = report(sql, consumer_id, failures=5, failed_seqs=[1, 2, 3, 4, 5], error="x")[0]
    assert report(sql, consumer_id, failures=50, failed_seqs=[6, 7, 8], error="x")[0] <= first


def test_of_several_processes_one_sends_the_probe_when_the_rest_is_over(
    sql: psycopg.Connection[Any], connect: Any, consumer_id: int
) -> None:
    def takes(connection: psycopg.Connection[Any]) -> bool:
        return bool(asked(connection, "select postbus_data.take_push_probe(%s)", consumer_id))

    report(sql, consumer_id, failures=5, failed_seqs=[1, 2, 3, 4, 5], error="x")
    assert not takes(sql)
    sql.execute("update postbus_data.push_state set rests_until = now() where consumer_id = %s", (consumer_id,))
    other = connect()
    assert [takes(sql), takes(other), takes(sql)] == [True, False, False]
    asked(sql, "select postbus_data.take_push_probe(%s, give_back => true)", consumer_id)
    assert takes(other)
    # A process that died with it loses it in time.
    sql.execute("update postbus_data.push_state set probe_until = now() where consumer_id = %s", (consumer_id,))
    assert takes(sql)


def test_it_is_paused_after_five_days_without_a_success(sql: psycopg.Connection[Any], consumer_id: int) -> None:
    report(sql, consumer_id, **failing(1))
    sql.execute(
        "update postbus_data.push_state set first_failure_at = now() - interval '5 days 1 minute' where consumer_id = %s",
        (consumer_id,),
    )
    assert report(sql, consumer_id, successes=1) == (0, False)
    report(sql, consumer_id, **failing(1))
    sql.execute(
        "update postbus_data.push_state set first_failure_at = now() - interval '5 days 1 minute' where consumer_id = %s",
        (consumer_id,),
    )
    assert report(sql, consumer_id, **failing(1))[1]


def test_a_successful_endpoint_writes_its_state_every_ten_seconds_at_most(
    sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    for _ in range(10):
        report(sql, consumer_id, successes=100)
    rows = sql.execute("select n from postbus_data.push_state where consumer_id = %s", (consumer_id,)).fetchall()
    assert rows == [(1,)]


def test_turns_are_given_at_the_rate_with_a_burst_of_a_second(sql: psycopg.Connection[Any], consumer_id: int) -> None:
    def turns(wanted: int) -> tuple[int, float]:
        found: tuple[int, float] = asked(
            sql,
            "select t.granted, t.wait_seconds from postbus_data.take_push_turns(%s, 5, %s) as t",
            consumer_id,
            wanted,
        )
        return found

    assert [turns(3)[0], turns(3)[0]] == [3, 2]
    granted, wait = turns(1)
    assert granted == 0
    assert 0 < wait <= 0.2


def test_tables_of_attempts_are_emptied_before_their_next_turn(sql: psycopg.Connection[Any], consumer_id: int) -> None:
    attempt = {"seq": 1, "attempt": 1, "outcome": "failed", "duration": 0.1}
    report(sql, consumer_id, **failing(1), attempts=[attempt])
    # Attempts of seven days ago lie in the table that is next.
    sql.execute(
        """
        insert into postbus_data.push_attempt
        select
            postbus_data.push_slot(now() + interval '1 day'), consumer_id, 2, null, 1, now() - interval '7 days', outcome, status,
            duration
        from postbus_data.push_attempt where consumer_id = %s and seq = 1
        """,
        (consumer_id,),
    )
    assert asked(sql, "select postbus_data.empty_push_attempts()") == 1
    kept = sql.execute("select seq from postbus_data.push_attempt where consumer_id = %s", (consumer_id,)).fetchall()
    assert kept == [(1,)]
    assert asked(sql, "select postbus_data.empty_push_attempts()") == 0


def test_a_dropped_consumer_leaves_neither_endpoint_nor_secrets(
    url: str, name: str, sql: psycopg.Connection[Any], consumer_id: int
) -> None:
    report(sql, consumer_id, **failing(1))
    with postbus.connect(url) as bus:
        bus.consumer(name, "hook").push.begin_test()
        bus.consumer(name, "hook").drop()
    for table in ("push", "push_secret", "push_state", "push_test"):
        assert asked(sql, f"select count(*) from postbus_data.{table} where consumer_id = %s", consumer_id) == 0
    # Somebody may still be on the way to report.
    assert report(sql, consumer_id, **failing(1)) == (0, False)
