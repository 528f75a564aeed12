"""What the data source is made of, without Spark."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual, StringStartsWith

import postbus
from postbus.spark.filters import Pushed, push
from postbus.spark.java import find_java
from postbus.spark.offsets import Offset
from postbus.spark.options import READ_OPTIONS, WRITE_OPTIONS, Position, read_options, write_options
from postbus.spark.slices import even_ranges
from postbus.spark.source import PostbusDataSource


def test_options_are_read_whatever_their_case() -> None:
    options = read_options({"STREAM": "a", "startingposition": "2026-01-31T08:00:00", "FailOnDataLoss": "FALSE"})

    assert options.start == Position(time=datetime(2026, 1, 31, 8, tzinfo=UTC))
    assert not options.fail_on_data_loss


def test_options_that_spark_adds_are_ignored() -> None:
    assert write_options({"stream": "a", "checkpointLocation": "/tmp", "path": "x"}).stream == "a"


@pytest.mark.parametrize("end", ["earliest", '{"0": 1}'])
def test_a_read_cannot_end_there(end: str) -> None:
    with pytest.raises(postbus.InvalidInput):
        read_options({"stream": "a", "endingPosition": end})


@pytest.mark.parametrize("name", sorted({*READ_OPTIONS, *WRITE_OPTIONS}))
def test_every_option_is_documented(name: str) -> None:
    assert f"`{name}`" in (PostbusDataSource.__doc__ or "")


@pytest.mark.parametrize(
    ("width", "least"), [(1, None), (10, 3), (2, 8), (1_000_000, None), (10_000_000, 5), (99_999, 7)]
)
def test_slices_cover_a_range_without_overlap(width: int, least: int | None) -> None:
    ranges = even_ranges(100, 100 + width, least)

    assert ranges[0][0] == 100
    assert ranges[-1][1] == 100 + width
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(low < high for low, high in ranges)
    assert len(ranges) >= min(least or 1, width)
    assert max(high - low for low, high in ranges) <= 1_000_000


def test_filters_that_postgres_cannot_apply_are_left_to_spark() -> None:
    in_list = In(("seq",), (1, 2))
    other = EqualTo(("data",), "x")
    given: list[Filter] = [
        GreaterThan(("seq",), 5),
        in_list,
        other,
        StringStartsWith(("key",), "a"),
        LessThanOrEqual(("seq",), 9),
    ]

    wanted, left = push(given, Pushed())

    assert (wanted.after_seq, wanted.to_seq, wanted.messages.key_prefix) == (5, 9, "a")
    assert left == [in_list, other]


def test_an_offset_survives_json() -> None:
    offset = Offset(7, "1", "00000001", 3, ahead=((2, 9),), after_seq=4)

    assert Offset.of(json.loads(json.dumps(offset.as_json()))) == offset
    with pytest.raises(postbus.Conflict, match="did not write"):
        Offset.of({"index": 5})


def test_the_data_source_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(PostbusDataSource({"stream": "a"}))).options == {"stream": "a"}


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


def test_java_is_found_by_its_home_the_path_or_in_the_usual_places(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.15")
    usual = fake_java(tmp_path / "jvm" / "java-17", "17")
    places = (str(tmp_path / "jvm"),)

    assert find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}, places) == home
    assert find_java({"PATH": str(on_path / "bin")}, places) == on_path
    assert find_java({"PATH": ""}, places) == usual


def test_without_a_java_that_is_new_enough_it_says_what_to_install(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_402")

    with pytest.raises(postbus.Unavailable, match=r"there is none[\s\S]*default-jre-headless"):
        find_java({"PATH": ""}, ())
    with pytest.raises(postbus.Unavailable, match="there is Java 8 in"):
        find_java({"JAVA_HOME": str(old), "PATH": ""}, ())
