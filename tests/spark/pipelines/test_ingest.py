"""Files and tables into a stream: each file once, and what cannot be published aside with its reason."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pytest
from pyarrow import parquet

import postbus
import postbus.pipelines.ingest.step as module
from postbus.pipelines import Ingested, IngestOptions, ingest_files
from tests.spark.pipelines.test_runtime import known

Rows = list[dict[str, Any]]


def ingest(spark: Any, url: str, stream: str, **options: Any) -> Ingested:
    return ingest_files(url, IngestOptions(stream=stream, **options), spark=spark)


def write_json(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def orders(first: int, count: int) -> Rows:
    return [{"id": n, "customer": f"c{n % 3}", "price": n / 2} for n in range(first, first + count)]


def ids(bus: postbus.Bus, stream: str) -> list[int]:
    return sorted(message.data["id"] for message in bus.scan(stream))


def reasons(bus: postbus.Bus, stream: str) -> list[str]:
    return sorted(message.data["reason"] for message in bus.scan(f"{stream}-bad"))


def test_json_lines_become_messages_with_keys_and_headers_as_they_are(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    lines = [
        '{"id": 1, "customer": {"name": "a"}, "big": 123456789012345678901234567890, "trace": "t1"}',
        "",
        '{"id":2,"customer":{"name":"b","extra":[1.50]}}',
    ]
    (tmp_path / "a file[1].json").write_text("\n".join(lines))

    done = ingest(
        spark, url, stream, files=str(tmp_path), key="orders.{customer.name}.{id}", headers={"trace": "trace"}
    )

    assert (done.messages, done.bad, done.files) == (2, 0, 1)
    assert [(m.key, m.headers) for m in sorted(bus.scan(stream), key=lambda m: str(m.key))] == [
        ("orders.a.1", {"trace": "t1"}),
        ("orders.b.2", {}),
    ]
    with psycopg.connect(url) as connection:
        found = connection.execute("select data::text from postbus.read(%s)", (stream,)).fetchall()
    assert sorted(text for (text,) in found) == sorted(line for line in lines if line)


def test_each_file_is_published_once_and_a_changed_one_is_reported(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "in" / "1.json", orders(0, 5))
    write_json(tmp_path / "in" / "below" / "2.jsonl", orders(5, 5))

    first = ingest(spark, url, stream, files=str(tmp_path / "in"), key="o.{id}", batch=1)
    write_json(tmp_path / "in" / "3.json", orders(10, 2))
    write_json(tmp_path / "in" / "1.json", orders(0, 6))
    second = ingest(spark, url, stream, files=str(tmp_path / "in"), key="o.{id}")
    third = ingest(spark, url, stream, files=str(tmp_path / "in"), key="o.{id}")

    assert (first.messages, first.files, first.changed) == (10, 2, ())
    assert (second.messages, second.files) == (2, 1)
    assert [Path(path).name for path in second.changed] == ["1.json"]
    assert (third.messages, third.files) == (0, 0)
    assert ids(bus, stream) == list(range(12))
    name = f"ingest {stream} from {tmp_path / 'in'}"
    with psycopg.connect(url) as connection:
        states = connection.execute("select path, state, step from postbus.ingested_files(%s)", (name,)).fetchall()
    assert [(Path(path).name, state, step) for path, state, step in states] == [
        ("1.json", "changed", 0),
        ("2.jsonl", "done", 1),
        ("3.json", "done", 2),
    ]
    assert known(bus, stream).message_count == 12


@pytest.mark.parametrize(
    "dies", [pytest.param("before publishing", marks=pytest.mark.slow), "after publishing", "before it is noted"]
)
def test_a_step_that_was_interrupted_is_published_once(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    write_json(tmp_path / "1.json", [*orders(0, 5), {"id": None, "customer": "c", "price": 1.0}])
    real = module.Ingestion._write
    calls = []

    def write(self: Any, frame: Any, target: str, number: int) -> None:
        calls.append(target)
        if dies == "before publishing":
            raise ZeroDivisionError
        real(self, frame, target, number)
        if dies == "after publishing" or len(calls) == 2:
            raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(module.Ingestion, "_write", write)
        with pytest.raises(ZeroDivisionError):
            ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")
    # What appears meanwhile is not part of the step that was begun.
    write_json(tmp_path / "2.json", orders(5, 2))
    with pytest.raises(postbus.Conflict, match="on their way with other options"):
        ingest(spark, url, stream, files=str(tmp_path), key="other.{id}")
    done = ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")

    assert (done.messages, done.bad, done.files) == (7, 1, 2)
    assert ids(bus, stream) == list(range(7))
    assert reasons(bus, stream) == ['column "id" of the key has no value']


POISON = {
    '{"id": 1, "customer": "a.b", "price": 1.0}': 'column "customer" of the key is "a.b", which cannot be a token',
    '{"id": 2, "customer": "", "price": 1.0}': 'column "customer" of the key has no value',
    '{"id": 3, "price": 1.0}': 'column "customer" of the key has no value',
    '{"id": 4, "customer": "c\\u0000", "price": 1.0}': 'column "customer" of the key is "c\x00", which cannot be a token',
    '{"id": 5, "customer": "c", "price": 1.0} {"id": 6}': "it is not a JSON object",
    '{"id": 5, "customer": "c", "price": 1.0}],[{"id": 6}': "it is not a JSON object",
    "{'id': 7, 'customer': 'c', 'price': 1.0}": "it is not a JSON object",
    '{"id": 8, "customer": "c", "price": NaN}': "it is not a JSON object",
    '[{"id": 9}]': "it is not a JSON object",
    "nonsense": "it is not a JSON object",
    '{"id": 10, "customer": "c", "price": 1.0, "color": "red"}': "column not in the schema: color",
    '{"id": "eleven", "customer": "c", "price": 1.0}': "column does not fit its type in the schema: id",
    '{"id": 12, "customer": "' + "c" * 300 + '", "price": 1.0}': "the key has more than 255 characters",
}


def test_rejected_rows_go_to_the_side_stream_with_their_text_and_reason(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, max_message_bytes=400)
    large = json.dumps({"id": 13, "customer": "c" * 200, "price": 1.0, "note": "x" * 200})
    text = "\n".join([*POISON, large, '{"id": 14, "customer": "c", "price": 1.0}'])
    (tmp_path / "1.json").write_bytes(text.encode() + b'\n{"id": 15, "customer": "\xff", "price": 1.0}\n')

    done = ingest(
        spark,
        url,
        name,
        files=str(tmp_path / "1.json"),
        schema="id bigint, customer string, price double, note string",
        key="o.{customer}.{id}",
    )

    assert (done.messages, done.bad) == (1, len(POISON) + 2)
    assert ids(bus, name) == [14]
    found = {message.data["row"]: message.data for message in bus.scan(f"{name}-bad")}
    assert {row: found[row]["reason"] for row in POISON} == POISON
    assert found[large]["reason"] == f"it has {len(large)} bytes, and the stream allows 400"
    assert [row["reason"] for text, row in found.items() if '"id": 15' in text] == ["it is not UTF-8"]
    assert {Path(row["file"]).name for row in found.values()} == {"1.json"}


def test_csv_columns_follow_the_header_and_quotes(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "1.csv").write_text('id,name,price\n1,"a, ""b""",1.5\n2,,2.5\n')
    with gzip.open(tmp_path / "2.csv.gz", "wt") as file:
        file.write("\ufeffname,id\nc,3\n\n")
    (tmp_path / "3.csv").write_text("")
    os.utime(tmp_path / "1.csv", (1, 1))

    ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")
    (tmp_path / "4.csv").write_text("id,name,price,color\n4,d,4.5,red\n")
    (tmp_path / "5.csv").write_text("id,name,price\n5,e,five\n6,f\n7,g,7.5\n")
    done = ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")

    assert sorted((m.key, m.data) for m in bus.scan(stream)) == [
        ("o.1", {"id": 1, "name": 'a, "b"', "price": 1.5}),
        ("o.2", {"id": 2, "name": None, "price": 2.5}),
        ("o.3", {"id": 3, "name": "c", "price": None}),
        ("o.7", {"id": 7, "name": "g", "price": 7.5}),
    ]
    assert (done.messages, done.bad) == (1, 3)
    aside = {message.data["row"]: message.data["reason"] for message in bus.scan(f"{stream}-bad")}
    assert set(aside) == {'{"id":4,"name":"d","price":4.5,"color":"red"}', "5,e,five", "6,f"}
    assert aside.pop('{"id":4,"name":"d","price":4.5,"color":"red"}') == "column not in the schema: color"
    assert {reason[:40] for reason in aside.values()} == {"the line has another number of values th"}


def test_parquet_files_with_other_types_and_columns_lose_nothing(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    import pyarrow
    from pyarrow import parquet

    def write(number: int, **columns: Any) -> None:
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{number}.parquet")

    write(1, id=[1, 2], name=["a", None])
    ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")
    write(2, id=["3", "four"], name=["c", "d"])
    write(3, id=[5], name=["e"], color=["red"])
    write(4, id=[6])
    done = ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")

    assert [(m.data["id"], m.data["name"]) for m in sorted(bus.scan(stream), key=lambda m: int(m.data["id"]))] == [
        (1, "a"),
        (2, None),
        (3, "c"),
        (6, None),
    ]
    assert (done.messages, done.bad, done.files) == (2, 2, 3)
    aside = {message.data["row"]: message.data["reason"] for message in bus.scan(f"{stream}-bad")}
    assert aside == {
        '{"id":"four","name":"d"}': "column does not fit its type in the schema: id",
        '{"id":5,"name":"e","color":"red"}': "column not in the schema: color",
    }


def test_a_table_of_the_session_is_published_once_or_again(spark: Any, bus: postbus.Bus, url: str, name: str) -> None:
    bus.create_stream(name, data_type="text")
    view = name.replace("-", "_")
    spark.range(5).selectExpr("id", "concat('text ', id) as note").createOrReplaceTempView(view)

    assert ingest(spark, url, name, table=view, key="t.{id}", data="note").messages == 5
    assert ingest(spark, url, name, table=view, key="t.{id}", data="note").messages == 0
    assert ingest(spark, url, name, table=view, key="t.{id}", data="note", again=True).messages == 5
    assert ingest(spark, url, name, query=f"select note from {view} where id = 3").messages == 1
    found = sorted((message.key or "", message.data) for message in bus.scan(name))
    assert found == [("", '{"note":"text 3"}'), *sorted(2 * [(f"t.{n}", f"text {n}") for n in range(5)])]


def test_a_folder_that_grows_is_followed_until_a_signal(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postbus.pipelines.runtime.run import Run

    waits = []

    def wait(self: Run, seconds: float) -> None:
        """Another file appears each time; one that was just written is not read yet."""
        waits.append(seconds)
        write_json(tmp_path / f"{len(waits)}.json", orders(len(waits), 1))
        os.utime(tmp_path / f"{len(waits)}.json", (len(waits), len(waits)))
        write_json(tmp_path / "half.json", orders(100, 1))
        if len(waits) == 3:
            self.stop()

    monkeypatch.setattr(Run, "wait", wait)
    options = IngestOptions(stream=stream, files=str(tmp_path), key="o.{id}", settle=3600, every=7)
    done = ingest_files(url, options, spark=spark, continuous=True)

    assert (done.messages, waits) == (2, [7, 7, 7])
    assert ids(bus, stream) == [1, 2]
    assert known(bus, stream).state == "stopped"


def test_a_file_deleted_before_it_is_read_is_reported(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(tmp_path / "1.json", orders(0, 1))
    write_json(tmp_path / "2.json", orders(1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(module.Ingestion, "_publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")
    (tmp_path / "1.json").unlink()
    done = ingest(spark, url, stream, files=str(tmp_path), key="o.{id}")

    assert (done.messages, done.files) == (1, 1)
    assert [Path(path).name for path in done.gone] == ["1.json"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, postbus.InvalidInput, "files, a table or a query"),
        ({"files": "/no/such", "table": "t"}, postbus.InvalidInput, "files, a table or a query"),
        ({"files": "/no/such"}, postbus.NotFound, "nothing lies at /no/such"),
        ({"files": "F", "format": "xml"}, postbus.InvalidInput, 'format "xml" is not known'),
        ({"files": "F", "key": "a b.{id}"}, postbus.InvalidInput, "is not a template of keys"),
        ({"files": "F", "key": "a.{nme}"}, postbus.InvalidInput, 'no column "nme"\nhint: did you mean "name"'),
        ({"files": "F", "schema": "id bigin"}, postbus.InvalidInput, '"id bigin" is not a schema'),
        ({"files": "F", "data": "price"}, postbus.InvalidInput, 'no column "price"'),
        ({"files": "F", "bad_into": "STREAM"}, postbus.InvalidInput, "need another stream"),
        ({"table": "no_such_table"}, postbus.Unavailable, "no_such_table"),
    ],
)
def test_impossible_options_are_one_line_errors(
    spark: Any, url: str, stream: str, tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    write_json(tmp_path / "1.json", [{"id": 1, "name": "a"}])
    given = {name: {"F": str(tmp_path), "STREAM": stream}.get(value, value) for name, value in options.items()}
    with pytest.raises(error, match=message):
        ingest(spark, url, stream, **given)


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_the_files_of_a_step_are_published_in_their_order(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path, kind: str
) -> None:
    bus.create_stream(name, partitions=1)
    # Spark itself would read the largest first.
    sizes = [3, 40, 1, 500, 2, 90, 1, 7, 300, 5, 5, 60]
    first = 0
    for number, size in enumerate(sizes):
        path = tmp_path / f"{number:02}.{kind}"
        rows = orders(first, size)
        if kind == "parquet":
            parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        elif kind == "csv":
            # The header is another one in between.
            names = ("id",) if number == 4 else ("id", "customer")
            lines = [",".join(str(row[name]) for name in names) for row in rows]
            path.write_text("\n".join([",".join(names), *lines]))
        else:
            write_json(path, rows)
        os.utime(path, (1_700_000_000, 1_700_000_000 + number // 4))
        first += size

    ingest(spark, url, name, files=str(tmp_path), key="o.{id}")

    assert [message.data["id"] for message in bus.scan(name)] == list(range(first))
