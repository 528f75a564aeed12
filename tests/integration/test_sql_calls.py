"""What people type in SQL: data of any type that holds JSON, one ack id or several."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

pytestmark = pytest.mark.newest_server


@pytest.fixture
def jobs(sql: Any, name: str) -> str:
    """A stream with a consumer "w"."""
    sql.execute("select postbus.create_stream(%s)", (name,))
    sql.execute("select postbus.create_consumer(%s, 'w', ordering => 'none')", (name,))
    return name


def _data(sql: Any, stream: str) -> list[str]:
    return [data for (data,) in sql.execute("select data from postbus.read(%s)", (stream,))]


@pytest.mark.parametrize(
    "call",
    [
        """postbus.publish('{}', 'k', '{"a": 1}')""",
        """postbus.publish('{}', 'k', '{"a": 1}'::text)""",
        """postbus.publish('{}', 'k', '{"a": 1}'::json)""",
        """postbus.publish('{}', 'k', '{"a": 1}'::jsonb)""",
        """postbus.publish('{}', 'k', '{"a": 1}', '{"trace": "x"}')""",
        """postbus.publish('{}', 'k', '{"a": 1}'::jsonb, '{"trace": "x"}')""",
        """postbus.publish('{}', key => 'k', data => '{"a": 1}')""",
        """postbus.publish('{}', data => '{"a": 1}'::jsonb)""",
        """postbus.publish('{}', data => jsonb_build_object('a', 1), ttl => '1 hour')""",
        """postbus.publish('{}', 'k', json_build_object('a', 1), headers => '{"trace": "x"}')""",
        """postbus.publish('{}', null, '{"a": 1}')""",
    ],
)
def test_publish_takes_data_as_text_json_and_jsonb(sql: Any, jobs: str, call: str) -> None:
    sql.execute("select " + call.replace("{}", jobs, 1))

    (data,) = _data(sql, jobs)
    assert data.replace(" ", "") == '{"a":1}'


@pytest.mark.parametrize("wrap", [str, Json, Jsonb])
def test_publish_takes_what_drivers_send(sql: Any, jobs: str, wrap: Any) -> None:
    value = '{"a": 1}' if wrap is str else wrap({"a": 1})
    sql.execute("select postbus.publish(%s, %s, %s)", (jobs, "k", value))

    assert _data(sql, jobs) == ['{"a": 1}']


def test_jsonb_is_published_to_a_text_stream_as_its_text_and_refused_by_a_bytes_stream(sql: Any, name: str) -> None:
    sql.execute("select postbus.create_stream(%s, data_type => 'text')", (f"{name}-t",))
    sql.execute("select postbus.create_stream(%s, data_type => 'bytes')", (f"{name}-b",))
    sql.execute("""select postbus.publish(%s, 'k', '{"a":1}'::jsonb)""", (f"{name}-t",))

    assert _data(sql, f"{name}-t") == ['{"a": 1}']
    with pytest.raises(psycopg.Error, match="bytes"):
        sql.execute("""select postbus.publish(%s, 'k', '{"a":1}'::jsonb)""", (f"{name}-b",))


def test_publish_many_takes_untyped_arrays(sql: Any, jobs: str) -> None:
    sql.execute("""select postbus.publish_many(%s, '{a,b}', '{1,2}')""", (jobs,))

    assert _data(sql, jobs) == ["1", "2"]


def _received(sql: Any, stream: str, count: int = 1) -> list[str]:
    for n in range(count):
        sql.execute("select postbus.publish(%s, 'k', %s)", (stream, str(n)))
    return [ack_id for (ack_id,) in sql.execute("select ack_id from postbus.receive(%s, 'w', %s)", (stream, count))]


@pytest.mark.parametrize("verb", ["ack", "nack", "extend", "terminate"])
@pytest.mark.parametrize(
    "given", ["'{0}'", "'{0}'::text", "'{{{0}}}'", "array['{0}']", "array['{0}']::text[]", "ack_id"]
)
def test_a_delivery_is_settled_by_one_ack_id_or_an_array(sql: Any, jobs: str, verb: str, given: str) -> None:
    (ack_id,) = _received(sql, jobs)
    table = f"(values ('{ack_id}')) as r (ack_id)"

    assert sql.execute(f"select postbus.{verb}('{jobs}', 'w', {given.format(ack_id)}) from {table}").fetchone() == (1,)


def test_one_ack_id_takes_the_options_of_the_call(sql: Any, jobs: str) -> None:
    first, second, third = _received(sql, jobs, 3)

    assert sql.execute(
        "select postbus.nack(%s, 'w', %s, delay => '1 hour', reason => 'no'), postbus.terminate(%s, 'w', %s, reason => 'bad'), "
        "postbus.extend(%s, 'w', %s, ack_wait => '1 hour')",
        (jobs, first, jobs, second, jobs, third),
    ).fetchone() == (1, 1, 1)
    assert [
        (state, reason)
        for state, reason in sql.execute("select state, reason from postbus.peek(%s, 'w') order by seq", (jobs,))
    ] == [("waiting", "no"), ("dead", "bad"), ("delivered", None)]


@pytest.mark.parametrize("as_list", [True, False])
def test_ack_takes_what_drivers_send(sql: Any, jobs: str, as_list: bool) -> None:
    (ack_id,) = _received(sql, jobs)

    assert sql.execute("select postbus.ack(%s, 'w', %s)", (jobs, [ack_id] if as_list else ack_id)).fetchone() == (1,)


@pytest.mark.parametrize("verb", ["ack", "nack", "extend", "terminate"])
@pytest.mark.parametrize("nonsense", ["nonsense", "0123456789abcdeg", "0123456789abcdef-", "0123456789abcdef-x"])
def test_what_is_no_ack_id_is_refused(sql: Any, jobs: str, verb: str, nonsense: str) -> None:
    for ids in (nonsense, [nonsense], ["0123456789abcdef", nonsense]):
        with pytest.raises(psycopg.Error, match="is not an ack id") as caught:
            sql.execute(f"select postbus.{verb}(%s, 'w', %s)", (jobs, ids))
        assert caught.value.sqlstate == "PB400"


@pytest.mark.parametrize("verb", ["ack", "nack", "extend", "terminate"])
def test_no_ack_id_at_all_counts_nothing(sql: Any, jobs: str, verb: str) -> None:
    for nothing in (
        "null",
        "'{}'",
        "null::text[]",
        "null::text",
        "(select array_agg(x) from unnest('{}'::text[]) as x)",
    ):
        assert sql.execute(f"select postbus.{verb}('{jobs}', 'w', {nothing})").fetchone() == (0,)


async def test_drivers_that_ask_postgres_for_types_give_one_ack_id_or_say_that_it_is_an_array(
    sql: Any, jobs: str, url: str
) -> None:
    first, second, third = _received(sql, jobs, 3)
    connection = await asyncpg.connect(url)
    try:
        assert await connection.fetchval("select postbus.ack($1, $2, $3)", jobs, "w", first) == 1
        assert await connection.fetchval("select postbus.ack($1, $2, $3::text[])", jobs, "w", [second, third]) == 2
        assert await connection.fetchval("select postbus.publish($1, $2, $3)", jobs, "k", '{"a": 1}') == 4
        assert await connection.fetchval("select postbus.publish($1, $2, $3::jsonb)", jobs, "k", '{"a": 1}') == 5
    finally:
        await connection.close()
