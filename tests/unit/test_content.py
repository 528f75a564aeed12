"""A message's data on its way to Postgres: what goes in comes out, or is refused."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postbus.codec import content
from postbus.codec.content import NotEncodable

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_comes_back_as_it_was(value: Any) -> None:
    try:
        encoded = content.encode_json(value)
    except NotEncodable:
        json.dumps(value).encode()  # Only what no UTF-8 can hold may be refused.
        with pytest.raises(UnicodeEncodeError):
            json.dumps(value, ensure_ascii=False).encode()
        return
    assert content.decode("json", encoded.decode(), None) == value


@pytest.mark.parametrize("value", [2**64, -(2**70), {"big": [2**100]}])
def test_an_integer_of_more_than_64_bits_stays_exact(value: Any) -> None:
    assert content.decode("json", content.encode_json(value).decode(), None) == value


@pytest.mark.parametrize(
    "text", ['"\\ud800"', "1e400", "-0", " [1, 2]\n", '{"a": 1, "a": 2}', "[" * 900 + "]" * 900, '"\\u0000"', "1E5"]
)
def test_json_published_by_others_is_decoded_like_the_standard_library(text: str) -> None:
    assert repr(content.decode_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [1.5, -math.inf]}, [None, math.nan]])
def test_not_a_number_is_refused_and_never_becomes_null(value: Any) -> None:
    with pytest.raises(NotEncodable, match="not JSON"):
        content.encode_json(value)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    _hidden: int = 2


@dataclass(slots=True)
class Line:
    start: Point
    at: datetime


class Pair(NamedTuple):
    a: int
    b: str


class Struct(msgspec.Struct, rename="camel"):
    first_name: str
    amount: Decimal
    point: Point


class Model:
    """As a model of pydantic: it writes itself."""

    def model_dump_json(self) -> str:
        return '{"model": [1, null]}'


NOON = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
ID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (NOON, '"2026-03-01T12:00:00.000250+00:00"'),
        (NOON.replace(tzinfo=None), '"2026-03-01T12:00:00.000250"'),
        (NOON.date(), '"2026-03-01"'),
        (NOON.timetz(), '"12:00:00.000250+00:00"'),
        (ID, f'"{ID}"'),
        (Decimal("0.10"), "0.10"),
        (Decimal("123456789012345678901234567890.123456789"), "123456789012345678901234567890.123456789"),
        (Decimal("1E+3"), "1E+3"),
        (Colour.RED, '"red"'),
        (Level.LOW, "1"),
        (Point(1), '{"x":1,"_hidden":2}'),
        (Line(Point(1), NOON), '{"start":{"x":1,"_hidden":2},"at":"2026-03-01T12:00:00.000250+00:00"}'),
        (Pair(1, "b"), '[1,"b"]'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (Struct("Ada", Decimal("1.50"), Point(3)), '{"firstName":"Ada","amount":1.50,"point":{"x":3,"_hidden":2}}'),
        (Model(), '{"model": [1, null]}'),
    ],
    ids=lambda value: type(value).__name__,
)
# Beside what orjson writes by itself, what it writes only after a look for NaN, and what it does not write.
@pytest.mark.parametrize("beside", [0, None, 2**70])
def test_values_with_one_obvious_form_in_json_are_written_in_it(value: Any, encoded: str, beside: Any) -> None:
    expected = f'{{"value":{encoded},"beside":{json.dumps(beside)}}}'
    assert content.encode_json({"value": value, "beside": beside}).decode() == expected


def test_a_model_of_pydantic_is_data() -> None:
    pydantic = pytest.importorskip("pydantic")
    invoice = pydantic.create_model("Invoice", at=(datetime, ...), amount=(Decimal, ...), note=(str | None, None))

    value = invoice(at=NOON.replace(microsecond=0), amount=Decimal("1.50"))
    assert content.encode_json([value]).decode() == '[{"at":"2026-03-01T12:00:00Z","amount":"1.50","note":null}]'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1, 2}, "data is of type set, which has no form in JSON"),
        ({"a": [1, {"b": object()}]}, "data.a[1].b is of type object, which has no form in JSON"),
        ({"raw": b"bytes"}, "data.raw is of type bytes, which has no form in JSON"),
        ({"a": Line(Point(object()), NOON)}, "data.a.start.x is of type object"),  # type: ignore[arg-type]
        ({"wait": timedelta(1)}, "data.wait is of type timedelta"),
        ({1: "a"}, "the key 1 of data is not a string"),
        ({"a": {None: 1}}, "the key None of data.a is not a string"),
        ([0, math.nan], "data[1] is nan, which JSON cannot say"),
        ({"a": Decimal("Infinity")}, "data.a is Infinity, which JSON cannot say"),
        ({"a": Struct("Ada", Decimal("NaN"), Point(1))}, "data.a is of type Struct, which cannot be written"),
        ({"a": Struct("Ada", math.inf, Point(1))}, "data.a is of type Struct, which cannot be written"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_form_in_json_is_refused_with_its_type_and_place(value: Any, said: str) -> None:
    with pytest.raises(NotEncodable, match=re.escape(said)):
        content.encode_json(value)


def test_the_error_for_a_value_says_what_to_do() -> None:
    with pytest.raises(NotEncodable) as caught:
        content.encode_json({"raw": b"bytes"})
    assert "base64" in (content.invalid_message(None, caught.value).hint or "")


def test_text_with_nul_is_refused_with_the_reason() -> None:
    with pytest.raises(NotEncodable, match="NUL"):
        content.encode_text("a\x00b")


@pytest.mark.parametrize("value", [b"bytes", 1, None, {"a": 1}])
def test_text_streams_take_only_strings(value: Any) -> None:
    with pytest.raises(NotEncodable, match="holds text"):
        content.encode_text(value)


@pytest.mark.parametrize("value", ["text", 1, None])
def test_bytes_streams_take_only_bytes(value: Any) -> None:
    with pytest.raises(NotEncodable, match="holds bytes"):
        content.encode_bytes(value)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(NotEncodable):
        content.encode_json("\ud800")
    with pytest.raises(NotEncodable):
        content.encode_text("\ud800")


@pytest.mark.parametrize("headers", [{"a": 1}, {1: "a"}, ["a"], {"a": "\x00"}])
def test_headers_are_strings_by_name(headers: Any) -> None:
    with pytest.raises(NotEncodable):
        content.encode_headers(headers)
