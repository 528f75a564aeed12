"""Values of rows, which come as text, as JSON: by a writer for each column, without a Python object for each value.

Nothing is lost: numbers keep their digits, and what JSON has no words for becomes a string that Postgres takes back.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Final

import orjson

from postbus.db.replication.pgoutput import UNCHANGED, Relation, Row, Unchanged

Writer = Callable[[bytes], bytes]

# With more digits, programs that decode numbers as doubles would round it.
_EXACT_DIGITS: Final = 15
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TIMESTAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?")
_NEEDS_QUOTES: Final = re.compile(r'["\\{},\s]')


def _text(value: bytes) -> bytes:
    return orjson.dumps(value.decode())


def _raw(value: bytes) -> bytes:
    return value


def _boolean(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def _float(value: bytes) -> bytes:
    # Not NaN, nor Infinity.
    return value if _NUMBER.fullmatch(value) else _text(value)


def _numeric(value: bytes) -> bytes:
    if len(value) > _EXACT_DIGITS and sum(48 <= byte <= 57 for byte in value) > _EXACT_DIGITS:
        return b'"' + value + b'"'
    return _float(value)


def _timestamp(value: bytes) -> bytes:
    """As ISO 8601 writes it. What that cannot say, such as infinity or a year BC, stays as it is."""
    found = _TIMESTAMP.fullmatch(value)
    if found is None:
        return _text(value)
    return b'"' + found[1] + b"T" + found[2] + (b"Z" if found[3] else b"") + b'"'


def _bytes(value: bytes) -> bytes:
    return b'"' + base64.b64encode(bytes.fromhex(value[2:].decode())) + b'"'


_BY_OID: Final[dict[int, Writer]] = {
    16: _boolean,
    17: _bytes,
    20: _raw,
    21: _raw,
    23: _raw,
    26: _raw,
    114: _raw,
    700: _float,
    701: _float,
    1114: _timestamp,
    1184: _timestamp,
    1700: _numeric,
    3802: _raw,
}
# Arrays of types whose output has no meaning of its own for the array's syntax, and what their elements are.
_ARRAYS: Final[dict[int, int]] = {
    1000: 16,
    1001: 17,
    1005: 21,
    1007: 23,
    1016: 20,
    1028: 26,
    1021: 700,
    1022: 701,
    1231: 1700,
    1009: 25,
    1015: 1043,
    1014: 1042,
    1002: 18,
    1003: 19,
    199: 114,
    3807: 3802,
    2951: 2950,
    1115: 1114,
    1185: 1184,
    1182: 1082,
    1183: 1083,
    1270: 1266,
    1187: 1186,
    1041: 869,
    651: 650,
}


def _array(write: Writer) -> Writer:
    def write_array(value: bytes) -> bytes:
        text = value.decode()
        # Bounds of its own, as in [0:1]={a,b}, have no place in JSON.
        return _text(value) if text.startswith("[") else _elements(text, write)

    return write_array


def _elements(text: str, write: Writer) -> bytes:
    """An array in the syntax of Postgres as one of JSON."""
    parts: list[bytes] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char in "{},":
            parts.append({"{": b"[", "}": b"]", ",": b","}[char])
            at += 1
        elif char == '"':
            element, at = _quoted_element(text, at + 1)
            parts.append(write(element.encode()))
        else:
            begin = at
            while text[at] not in ",}":
                at += 1
            element = text[begin:at]
            parts.append(b"null" if element == "NULL" else write(element.encode()))
    return b"".join(parts)


def _quoted_element(text: str, at: int) -> tuple[str, int]:
    element: list[str] = []
    while text[at] != '"':
        if text[at] == "\\":
            at += 1
        element.append(text[at])
        at += 1
    return "".join(element), at + 1


def writer_of(type_oid: int) -> Writer:
    """What makes JSON of the values of a type. A type that is not known is text."""
    if type_oid in _ARRAYS:
        return _array(writer_of(_ARRAYS[type_oid]))
    return _BY_OID.get(type_oid, _text)


class RowWriter:
    """Writes the rows of a table, as long as its columns stay as they are."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.names = [column.name for column in relation.columns]
        self._columns = [(orjson.dumps(column.name) + b":", writer_of(column.type_oid)) for column in relation.columns]
        self.keys = [place for place, column in enumerate(relation.columns) if column.is_key]

    def record(self, row: Row) -> bytes:
        """The row as an object, without the values that did not come."""
        return (
            b"{"
            + b",".join(
                [
                    prefix + (b"null" if value is None else write(value))
                    for value, (prefix, write) in zip(row, self._columns, strict=True)
                    if value is not UNCHANGED
                ]
            )
            + b"}"
        )

    def key_record(self, row: Row) -> bytes:
        """The columns of the key."""
        return self._of([place for place in self.keys if row[place] is not UNCHANGED], row)

    def changes(self, old: Row, new: Row) -> bytes:
        """The former values of what has changed."""
        return self._of([n for n, value in enumerate(old) if value != new[n] and new[n] is not UNCHANGED], old)

    def value(self, place: int, value: bytes) -> bytes:
        """One value."""
        return self._columns[place][1](value)

    def unchanged(self, row: Row) -> list[str]:
        """The columns whose values did not come."""
        return [name for name, value in zip(self.names, row, strict=True) if value is UNCHANGED]

    def _of(self, places: list[int], row: Row) -> bytes:
        parts = []
        for place in places:
            value = row[place]
            assert not isinstance(value, Unchanged)  # noqa: S101
            prefix, write = self._columns[place]
            parts.append(prefix + (b"null" if value is None else write(value)))
        return b"{" + b",".join(parts) + b"}"
