"""A stream becomes a table: what holds now, or all that held, each change once."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus.pipelines import MaterializeOptions, materialize_stream, read_snapshot
from tests import servers

SCHEMA = "n INT, price DECIMAL(10,2), at TIMESTAMP, day DATE, ok BOOLEAN, word STRING, more JSON"
ROW = {
    "n": 1,
    "price": "12.50",
    "at": "2026-01-31T08:00:00.123456+01:00",
    "day": "2026-01-31",
    "ok": True,
    "word": "ü'\"",
    "more": {"a": [1, None, 2**70]},
}


@pytest.fixture
def prices(bus: postbus.Bus, name: str) -> str:
    bus.create_stream(name, partitions=4, one_message_per_key=True)
    return name


def materialize(spark: Any, url: str, stream: str, **options: Any) -> int:
    return materialize_stream(url, MaterializeOptions(stream=stream, **options), spark=spark).read


def rows_of(url: str, statement: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(statement).fetchall()


def of_table(url: str, table: str) -> dict[str, Any]:
    return {row["_key"]: row for row in rows_of(url, f'select * from "{table}"')}


def of_files(spark: Any, folder: Path, stream: str) -> dict[str, Any]:
    return {row["_key"]: row.asDict() for row in read_snapshot(spark, f"{folder}/{stream}").collect()}


def test_inferred_columns_keep_every_digit(
    spark: Any, bus: postbus.Bus, url: str, name: str, sql: Any, tmp_path: Path
) -> None:
    bus.create_stream(name)
    rows = {
        "a": '{"price": 12345678901234567.123456, "rate": 0.1, "id": 9007199254740993, "odd": 1.5, "most": 1e400}',
        "b": '{"price": 10.5, "rate": 2, "id": 1, "odd": 9007199254740993, "most": 12345678901234567890123456789012345678}',
        "c": '{"price": -3, "rate": null, "id": 2, "odd": {"n": 1.00000000000000000001}}',
    }
    for key, data in rows.items():
        sql.execute("select postbus.publish(%s, %s, %s)", [name, key, data])
    for target in ({"table": name}, {"to": str(tmp_path)}):
        assert materialize(spark, url, name, **target) == 3

    table, files = of_table(url, name), of_files(spark, tmp_path, name)
    for found in (table, files):
        assert {key: row["price"] for key, row in found.items()} == {
            "a": Decimal("12345678901234567.123456"),
            "b": Decimal("10.5"),
            "c": -3,
        }
        assert {key: row["rate"] for key, row in found.items()} == {"a": 0.1, "b": 2, "c": None}
        assert {key: row["id"] for key, row in found.items()} == {"a": 9007199254740993, "b": 1, "c": 2}
    assert [table[key]["odd"] for key in "abc"] == [1.5, 9007199254740993, {"n": 1}]
    assert json.loads(files["c"]["odd"], parse_float=Decimal) == {"n": Decimal("1.00000000000000000001")}

    # A column that is a DOUBLE by now does not round the numbers to come.
    sql.execute("select postbus.publish(%s, 'd', %s)", [name, '{"rate": 0.12345678901234567890123}'])
    with pytest.raises(postbus.Conflict, match=r"field rate does not fit its type: 0\.12345678901234567890123"):
        materialize(spark, url, name, table=name)


def test_the_last_version_of_each_key_is_a_row_with_types_and_goes_when_the_key_does(
    spark: Any, bus: postbus.Bus, url: str, prices: str, tmp_path: Path
) -> None:
    bus.publish(prices, key="a", data=ROW)
    bus.publish(prices, key="b", data={"n": 2})
    bus.publish(prices, key="c", data={"n": 3})
    for target in ({"table": prices}, {"to": str(tmp_path)}):
        assert materialize(spark, url, prices, schema=SCHEMA, **target) == 3
    bus.publish(prices, key="b", data={"n": 20})
    bus.delete_key(prices, "c")
    for target in ({"table": prices}, {"to": str(tmp_path)}):
        assert materialize(spark, url, prices, schema=SCHEMA, **target) == 2
        assert materialize(spark, url, prices, schema=SCHEMA, **target) == 0

    table, files = of_table(url, prices), of_files(spark, tmp_path, prices)

    assert table.keys() == files.keys() == {"a", "b"}
    assert (table["b"]["n"], files["b"]["n"]) == (20, 20)
    for row in (table["a"], files["a"]):
        assert (row["n"], str(row["price"]), row["ok"], row["word"]) == (1, "12.50", True, "ü'\"")
        assert (row["day"].isoformat(), row["at"].astimezone().timestamp()) == ("2026-01-31", 1769842800.123456)
    assert (table["a"]["more"], json.loads(files["a"]["more"])) == (ROW["more"], ROW["more"])
    assert len(list((tmp_path / prices).glob("snapshot-*"))) == 2
    assert bus.consumer(prices, f"materialize-{prices}").stats().lag_estimate == 0
    assert rows_of(url, "select * from pg_class where relname like 'postbus_stage_%'") == []


def changes_of(seed: int, count: int) -> list[postbus.Message]:
    chance = random.Random(seed)
    return [
        postbus.Message(
            key=f"k.{chance.randrange(8)}",
            data={"action": chance.choice(("insert", "update", "delete")), "record": {"n": n, "half": n / 2}},
        )
        for n in range(count)
    ]


def expected(bus: postbus.Bus, stream: str) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """What holds now, and all versions, as a loop over the log finds them."""
    now: dict[str, int] = {}
    versions: dict[str, list[list[Any]]] = {}
    for message in sorted(bus.scan(stream), key=lambda message: message.seq or 0):
        key, at = str(message.key), message.published_at
        own = versions.setdefault(key, [])
        if own and own[-1][3] is None:
            own[-1][3] = at
        now.pop(key, None)
        if message.data["action"] != "delete":
            now[key] = message.data["record"]["n"]
            own.append([key, message.data["record"]["n"], at, None])
    return now, sorted(tuple(version) for own in versions.values() for version in own)


@pytest.mark.slow
def test_changes_become_the_present_rows_and_all_versions_however_steps_fall(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {"table": stream},
        {"table": f"{stream}-history", "history": True},
        {"to": f"{tmp_path}/now"},
        {"to": f"{tmp_path}/history", "history": True},
    )
    for part in range(2):
        bus.publish_many(stream, changes_of(part, 60))
        for kind in kinds:
            assert materialize(spark, url, stream, changes=True, batch=40 + 20 * part, **kind) == 60
    now, versions = expected(bus, stream)

    assert {key: row["n"] for key, row in of_table(url, stream).items()} == now
    assert {key: row["n"] for key, row in of_files(spark, tmp_path / "now", stream).items()} == now
    order = "order by _key, _seq"
    held = rows_of(url, f'select * from "{stream}-history" {order}')
    assert sorted((row["_key"], row["n"], row["valid_from"], row["valid_to"]) for row in held) == versions
    assert {row["_key"]: row["n"] for row in held if row["is_current"]} == now
    kept = [row.asDict() for row in read_snapshot(spark, f"{tmp_path}/history/{stream}").collect()]
    names = ("_key", "n", "half", "_seq", "is_current")
    wanted = [tuple(row[name] for name in names) for row in held]
    assert sorted(tuple(row[name] for name in names) for row in kept) == sorted(wanted)
    ends = {(row["_seq"], row["valid_to"] and row["valid_to"].timestamp()) for row in held}
    assert {(row["_seq"], row["valid_to"] and row["valid_to"].timestamp()) for row in kept} == ends


@pytest.mark.slow
def test_new_fields_become_columns_and_bad_values_stop_the_run_or_are_rejected_once(
    spark: Any, bus: postbus.Bus, url: str, stream: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(f"{name}-bad")
    targets: tuple[dict[str, Any], ...] = ({"table": stream}, {"to": str(tmp_path)})
    bus.publish(stream, key="a", data={"n": 1})
    for target in targets:
        materialize(spark, url, stream, **target)
    bus.publish(stream, key="b", data={"n": 2, "Größe": 1.5})
    seq = bus.publish(stream, key="a", data={"n": "many"}, headers={"trace": "x"})
    bus.publish(stream, data={"n": 3})

    for target in targets:
        with pytest.raises(postbus.Conflict, match=f"message {seq} .* does not fit: field n") as caught:
            materialize(spark, url, stream, **target)
        assert "--bad-into" in str(caught.value.hint)
        for _ in range(2):
            materialize(spark, url, stream, bad_into=f"{name}-bad", **target)

    for rows in (of_table(url, stream), of_files(spark, tmp_path, stream)):
        assert {key: (row["n"], row["Größe"]) for key, row in rows.items()} == {"a": (1, None), "b": (2, 1.5)}
    aside = [message.headers or {} for message in bus.scan(f"{name}-bad")]
    # Of each target its own.
    assert sorted((each["postbus-seq"], each["postbus-reason"]) for each in aside) == sorted(
        2 * [(str(seq), "field n does not fit its type: many"), (str(seq + 1), "it has no key")]
    )


def test_a_table_of_another_postgres_is_kept_and_foreign_ones_are_left_alone(
    spark: Any, bus: postbus.Bus, url: str, stream: str, spark_server: servers.Server, tmp_path: Path
) -> None:
    bus.publish(stream, key="a", data={"n": 1})
    with servers.database(spark_server.url, install=False) as other:
        (tmp_path / "url").write_text(other)
        place = {"table_url": f"file:{tmp_path / 'url'}"}
        materialize(spark, url, stream, table="t", **place)
        bus.publish(stream, key="a", data={"n": 5})
        materialize(spark, url, stream, table="t", **place)
        assert of_table(other, "t")["a"]["n"] == 5
        with psycopg.connect(other) as connection:
            connection.execute("create table mine (id int)")
        for options, said in (
            ({"table": "mine"}, "exists, and was not made of a stream"),
            ({"table": "t", "history": True}, "holds the present rows"),
            ({"table": "t", "schema": "n STRING"}, "field n of the table is BIGINT"),
        ):
            with pytest.raises(postbus.Conflict, match=said):
                materialize(spark, url, stream, **place, **options)
        bus.drop_stream(stream)
        bus.create_stream(stream)
        with pytest.raises(postbus.Conflict, match="made of another stream"):
            materialize(spark, url, stream, table="t", **place)
        assert materialize(spark, url, stream, table="t", again=True, **place) == 0
        assert of_table(other, "t") == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a table or files"),
        ({"table": "a.b.c"}, "does not name a table"),
        ({"table": "t", "schema": "n"}, "is not a field"),
        ({"table": "t", "schema": "n NUMBER"}, "NUMBER is not a type"),
        ({"table": "t", "schema": "_seq INT"}, "cannot have the field"),
        ({"table": "t", "schema": "a INT, A INT"}, "have one name"),
    ],
)
def test_an_impossible_table_is_refused_with_the_reason(
    spark: Any, url: str, stream: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(postbus.InvalidInput, match=said):
        materialize(spark, url, stream, **options)
