"""Later files have other columns and types than the first ones, and every row is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from pyspark.sql import types

import postbus
import postbus.pipelines.ingest.redrive as module
from postbus.pipelines import Ingested
from postbus.pipelines.ingest.schema_changes import compare
from tests.spark.pipelines.test_ingest import ids, ingest, orders, reasons, write_json

Run = Callable[..., Ingested]


@pytest.fixture
def run(spark: Any, url: str, stream: str, tmp_path: Path) -> Run:
    return lambda **options: ingest(spark, url, stream, files=str(tmp_path), key="o.{id}", **options)


def colored(first: int, count: int) -> list[dict[str, Any]]:
    return [{**row, "color": "red"} for row in orders(first, count)]


def pipeline_of(bus: postbus.Bus, stream: str) -> postbus.PipelineInfo:
    return next(each for each in bus.list_pipelines() if each.stream == stream)


def test_evolve_takes_new_columns_and_wider_types(run: Run, bus: postbus.Bus, stream: str, tmp_path: Path) -> None:
    write_json(tmp_path / "1.json", orders(0, 3))
    run(schema_changes="evolve")
    write_json(tmp_path / "2.json", [*colored(3, 2), {**orders(5, 1)[0], "price": "free"}])

    done = run(schema_changes="evolve")

    assert (done.messages, done.bad, done.schema_changes) == (2, 1, ("column color is new: string",))
    assert ids(bus, stream) == list(range(5))
    assert [message.data.get("color") for message in bus.scan(stream, from_seq=4)] == ["red", "red"]
    assert reasons(bus, stream) == ["column does not fit its type in the schema: price"]
    assert (pipeline_of(bus, stream).message_count, pipeline_of(bus, stream).aside_count) == (5, 1)


def test_stop_publishes_nothing_of_files_with_another_schema(
    run: Run, bus: postbus.Bus, stream: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "1.json", orders(0, 3))
    run(schema_changes="stop")
    write_json(tmp_path / "2.json", colored(3, 2))

    with pytest.raises(postbus.Conflict, match="files have another schema: column color is new: string"):
        run(schema_changes="stop")
    assert ids(bus, stream) == [0, 1, 2]

    assert run(schema_changes="evolve").messages == 2
    assert ids(bus, stream) == list(range(5))


def test_rows_that_went_aside_are_published_once_after_the_schema_was_mended(
    run: Run, bus: postbus.Bus, stream: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "1.json", orders(0, 3))
    run()
    write_json(tmp_path / "2.json", [*colored(3, 4), {"id": "seven", "customer": "c", "price": 1.0}])
    assert run().bad == 5
    schema = "id bigint, customer string, price double, color string"

    again = run(schema=schema, redrive=True)
    assert (again.redriven, again.files) == (4, 0)
    assert ids(bus, stream) == list(range(7))
    assert bus.read(stream, key="o.3").messages[0].data == colored(3, 1)[0]
    assert pipeline_of(bus, stream).aside_count == 1

    assert run(schema=schema, redrive=True).redriven == 0
    assert ids(bus, stream) == list(range(7))
    # What still does not fit went aside again, and is tried again.
    run(schema="id string, customer string, price double, color string", redrive=True)
    assert bus.read(stream, key="o.seven").messages[0].data["id"] == "seven"
    assert pipeline_of(bus, stream).aside_count == 0


@pytest.mark.parametrize("dies_at", [1, 2])
def test_a_redrive_that_was_interrupted_publishes_each_row_once(
    run: Run, bus: postbus.Bus, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    write_json(tmp_path / "1.json", [*orders(0, 2), *colored(2, 3), {"id": None}])
    run(schema="id bigint, customer string, price double")
    real = module.Redrive._write
    calls = []

    def write(self: Any, *arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == dies_at == 2:
            raise ZeroDivisionError
        real(self, *arguments)
        if len(calls) == dies_at == 1:
            raise ZeroDivisionError

    schema = "id bigint, customer string, price double, color string"
    with monkeypatch.context() as patch:
        patch.setattr(module.Redrive, "_write", write)
        with pytest.raises(ZeroDivisionError):
            run(schema=schema, redrive=True)
    for _ in range(2):
        run(schema=schema, redrive=True)

    assert ids(bus, stream) == list(range(5))
    run(schema="id string, customer string, price double, color string", redrive=True)
    assert reasons(bus, stream)[0] == 'column "id" of the key has no value'


def test_csv_and_parquet_rows_are_redriven_with_their_types(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "1.csv").write_text("id,total,at\n1,2.50,2026-01-31T08:00:00Z\n")
    options: dict[str, Any] = {"files": str(tmp_path / "*.csv"), "key": "o.{id}"}
    ingest(spark, url, stream, schema="id bigint, total double", **options)
    fixed = "id bigint, total decimal(10,2), at timestamp"

    assert ingest(spark, url, stream, schema=fixed, redrive=True, **options).redriven == 1
    assert bus.read(stream, key="o.1").messages[0].data == {"id": 1, "total": 2.5, "at": "2026-01-31T08:00:00.000Z"}

    when = datetime(2026, 1, 31, 8, tzinfo=UTC)
    parquet.write_table(pyarrow.table({"id": [2], "total": [Decimal("2.50")], "at": [when]}), tmp_path / "2.parquet")
    options = {"files": str(tmp_path / "*.parquet"), "key": "o.{id}"}
    ingest(spark, url, stream, schema="id bigint, total decimal(10,2)", **options)
    assert ingest(spark, url, stream, schema=fixed, redrive=True, **options).redriven == 1
    assert bus.read(stream, key="o.2").messages[0].data == {"id": 2, "total": 2.5, "at": "2026-01-31T08:00:00.000Z"}


def test_a_run_fails_when_more_rows_go_aside_than_allowed(
    run: Run, bus: postbus.Bus, stream: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "1.json", [*orders(0, 8), {"id": None}, {"id": ""}])

    with pytest.raises(postbus.Conflict, match="2 of 10 rows could not be published, and --max-bad allows 10%"):
        run(max_bad="10%")
    assert ids(bus, stream) == list(range(8))
    assert pipeline_of(bus, stream).state == "failed"
    # What was published stays published, and counts once.
    assert run(max_bad="10%").messages == 0


def schema(written: str) -> types.StructType:
    return types.StructType([*types._parse_datatype_string(written).fields])  # type: ignore[attr-defined]


def test_types_are_widened_where_no_value_changes_by_it(spark: Any) -> None:
    known = schema("a int, b double, c date, d string, e struct<x: int>, f array<int>, g decimal(5,2), h bigint")
    found = schema(
        "a bigint, b float, c timestamp, d int, e struct<x: bigint, y: string>, f array<bigint>, g decimal(9,2), h double, i int"
    )

    compared = compare(known, found)

    assert compared.schema.simpleString() == (
        "struct<a:bigint,b:double,c:date,d:string,e:struct<x:bigint,y:string>,f:array<bigint>,g:decimal(9,2),h:bigint,i:int>"
    )
    assert compared.changes == [
        "column a is bigint now, was int",
        "column e.x is bigint now, was int",
        "column e.y is new: string",
        "column f[] is bigint now, was int",
        "column g is decimal(9,2) now, was decimal(5,2)",
        "column i is new: int",
    ]
    assert compared.conflicts == ["column c is timestamp, not date", "column h is double, not bigint"]
    again = compare(compared.schema, found)
    assert again.changes == []


def test_an_unknown_policy_is_an_error_of_one_line(run: Run) -> None:
    with pytest.raises(postbus.InvalidInput, match='schema_changes = "merge" is not known'):
        run(schema_changes="merge")
