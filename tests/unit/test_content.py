"""A message's data on its way to Postgres: what goes in comes out, or is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("value", [datetime.now(UTC), Point(1), {1, 2}, object(), b"bytes", {1: "a"}, {"a": {None: 1}}])
def test_values_that_would_change_in_a_round_trip_are_refused(value: Any) -> None:
    with pytest.raises(NotEncodable):
        content.encode_json(value)


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
