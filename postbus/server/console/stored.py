"""Messages as they are stored: JSON stays text, so that no digit of a number changes on the way to a page."""

from __future__ import annotations

from typing import Final, TypeVar

from postbus.html.markup import Html, join, tag
from postbus.model.stream import DataType
from postbus.model.wording import size
from postbus.operations.call import Call, DataSql
from postbus.server.console.json_text import compact, pretty
from postbus.server.console.parts import link

Result = TypeVar("Result")
# How much of a message a page shows unless it is asked for all of it, and in a list.
_MOST_SHOWN: Final = 64 * 1024
_MOST_IN_LIST: Final = 160


def as_stored(call: Call[Result]) -> Call[Result]:
    """The operation with data that is not decoded: the text of JSON."""
    sql = call.sql
    if not isinstance(sql, DataSql):
        raise TypeError(f"{type(sql).__name__} returns no data of messages")
    decode = sql.decode
    sql.decode = lambda data_type, rows: decode("text" if data_type == "json" else data_type, rows)
    return call


def text_of(data: str | bytes | None) -> str:
    """Data as text. Bytes that are not UTF-8 are shown in hexadecimal."""
    if data is None:
        return ""
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex(" ")


def in_list(data: str | bytes | None) -> Html:
    """Data on one line."""
    if data is None:
        return tag("span", "gone from the stream", class_="soft")
    return tag("code", compact(text_of(data), _MOST_IN_LIST), class_="data")


def whole(data: str | bytes | None, data_type: DataType, *, all_of_it: bool, to_all: str) -> Html:
    """Data laid out for reading, cut if it is long."""
    text = text_of(data)
    is_cut = len(text) > _MOST_SHOWN and not all_of_it
    shown = text[:_MOST_SHOWN] if is_cut else text
    body = pretty(shown) if data_type == "json" else shown
    rest = None
    if is_cut:
        rest = tag("p", f"The first {size(_MOST_SHOWN)} of {size(len(text))}. ", link("Show all", to_all))
    return join(tag("pre", tag("code", body), class_="data", data_copy=""), rest)
