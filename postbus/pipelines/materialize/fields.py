"""The fields of a table that is made of messages: how users name them, what messages suggest, and what fits them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import orjson
from pyspark.sql import types

from postbus.codec.exact_json import encode_exactly
from postbus.model.errors import InvalidInput
from postbus.spark.columns import converter

JSON: Final = "JSON"
# The columns that a table has besides.
KEY: Final = "_key"
SEQ: Final = "_seq"
PUBLISHED_AT: Final = "_published_at"
HISTORY: Final = ("valid_from", "valid_to", "is_current")
_RESERVED: Final = frozenset({KEY, SEQ, PUBLISHED_AT, *HISTORY})
# What Postgres keeps of a name, in bytes.
_MOST_BYTES: Final = 63
_SIMPLE: Final[dict[str, types.DataType]] = {
    "STRING": types.StringType(),
    "BOOLEAN": types.BooleanType(),
    "INT": types.IntegerType(),
    "BIGINT": types.LongType(),
    "DOUBLE": types.DoubleType(),
    "TIMESTAMP": types.TimestampType(),
    "DATE": types.DateType(),
    # Any value, as its text.
    JSON: types.StringType(),
}
_FIELD: Final = re.compile(r"\s*(?:`([^`]+)`|(\w+))\s+(\w+(?:\s*\(\s*\d+\s*(?:,\s*\d+\s*)?\))?)\s*")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+)(?:,(\d+))?\)")
_MOST_DIGITS: Final = 38
_LONG: Final = 1 << 63
# Integers of as many digits are doubles.
_DOUBLE_DIGITS: Final = 15
_KINDS: Final[dict[type, str]] = {
    bool: "BOOLEAN",
    str: "STRING",
    dict: JSON,
    list: JSON,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of messages that is a column of a table."""

    name: str
    type: str

    def spark_type(self) -> types.DataType:
        """As Spark knows it."""
        if found := _DECIMAL.fullmatch(self.type):
            return types.DecimalType(int(found[1]), int(found[2] or 0))
        return _SIMPLE[self.type]

    def check(self) -> None:
        """Refuse a name or a type that a table cannot have.

        Raises:
            InvalidInput: The hint says what to do.
        """
        if self.name.lower() in _RESERVED or len(self.name.encode()) > _MOST_BYTES or not self.name.isprintable():
            raise InvalidInput(
                f'a table cannot have the field "{self.name}": the name is its own, or too long',
                "name the fields that you want by --schema",
            )
        if self.type not in _SIMPLE and _DECIMAL.fullmatch(self.type) is None:
            raise InvalidInput(f"{self.type} is not a type of fields", f"there are: {', '.join(_SIMPLE)}, DECIMAL(p,s)")


def parse_fields(written: str) -> tuple[Field, ...]:
    """Fields as users write them: `id BIGINT, price DECIMAL(10,2), tags JSON`.

    Raises:
        InvalidInput: It is not that.
    """
    found = []
    for part in re.split(r",(?![^(]*\))", written):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise InvalidInput(
                f'"{part.strip()}" is not a field', "write 'id BIGINT, name STRING, price DECIMAL(10,2), tags JSON'"
            )
        found.append(Field(match[1] or match[2], re.sub(r"\s", "", match[3]).upper().replace("INTEGER", "INT")))
    return checked(found)


def checked(fields: Iterable[Field]) -> tuple[Field, ...]:
    """The fields, if a table can have them all.

    Raises:
        InvalidInput: It cannot.
    """
    found = tuple(fields)
    seen: dict[str, str] = {}
    for field in found:
        field.check()
        if (other := seen.setdefault(field.name.lower(), field.name)) != field.name or found.count(field) > 1:
            raise InvalidInput(
                f'the fields "{other}" and "{field.name}" have one name', "name the fields that you want by --schema"
            )
    return found


def kinds_of(record: Any) -> Iterable[tuple[str, str]]:
    """What the values of a record suggest as types of its fields; nothing for null."""
    if isinstance(record, dict):
        for name, value in record.items():
            if value is not None:
                yield name, _KINDS.get(type(value)) or _number_kind(value)


def _number_kind(value: int | Decimal) -> str:
    """The narrowest type that holds a number as it is written, and how many digits it has before and after the point."""
    if isinstance(value, int):
        return f"{'BIGINT' if -_LONG <= value < _LONG else 'DECIMAL'}:{len(str(abs(value)))}:0"
    if not value.is_finite():
        return JSON
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101
    return f"{'DOUBLE' if is_double(value) else 'DECIMAL'}:{max(0, len(digits) + exponent)}:{max(0, -exponent)}"


def is_double(number: Decimal) -> bool:
    """Whether a double holds this number as it is written."""
    return Decimal(repr(float(number))) == number


def grown(known: tuple[Field, ...], suggested: Iterable[tuple[str, str]]) -> tuple[Field, ...]:
    """The fields that are known, and those that messages have besides. Values of several types make a field JSON.

    Raises:
        InvalidInput: A table cannot have them all.
    """
    names = {field.name for field in known}
    kinds: dict[str, set[str]] = {}
    for name, kind in sorted(suggested):
        if name not in names:
            kinds.setdefault(name, set()).add(kind)
    return checked((*known, *(Field(name, _one_of(found)) for name, found in kinds.items())))


def _one_of(kinds: set[str]) -> str:
    """The type that holds the values of all these kinds."""
    numbers = [each.split(":") for each in kinds if ":" in each]
    if not numbers or len(numbers) < len(kinds):
        return next(iter(kinds)) if len(kinds) == 1 else JSON
    types_ = {kind for kind, _, _ in numbers}
    whole = max(int(each) for _, each, _ in numbers)
    scale = max(int(each) for _, _, each in numbers)
    if types_ == {"BIGINT"} or types_ == {"DOUBLE"}:
        return next(iter(types_))
    if types_ == {"BIGINT", "DOUBLE"} and whole <= _DOUBLE_DIGITS:
        return "DOUBLE"
    # Numbers to come may have as many more digits as there is room for.
    return f"DECIMAL({_MOST_DIGITS},{scale})" if whole + scale <= _MOST_DIGITS else JSON


def encoder(
    fields: Iterable[Field], *, json_as_text: bool, is_exact: bool = False
) -> Callable[[Any, Collection[str]], str]:
    """A function that turns a record into the JSON of these fields but some; on request with the text of values of type JSON.

    It raises ValueError where a value does not fit, and says which. If it is exact, a number does not fit a DOUBLE that would
    round it.
    """

    def converter_of(field: Field) -> Callable[[Any], Any]:
        if field.type == JSON:
            return _text if json_as_text else _json
        return _exact_double if is_exact and field.type == "DOUBLE" else converter(field.spark_type())

    converters = [(field.name, converter_of(field)) for field in fields]

    def encode(record: Any, without: Collection[str]) -> str:
        if not isinstance(record, Mapping):
            raise ValueError(f"it is not an object: {type(record).__name__}")  # noqa: TRY004
        row = {}
        for name, convert in converters:
            if name in without:
                continue
            value = record.get(name)
            try:
                row[name] = None if value is None else convert(value)
            except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
                raise ValueError(f"field {name} does not fit its type: {str(value)[:100]}") from error
        text = orjson.dumps(row, default=_as_text).decode()
        if "\\u0000" in text:
            raise ValueError("it has a NUL character, which a table cannot hold")
        return text

    return encode


def _exact_double(value: Any) -> float:
    number = float(converter(types.DoubleType())(value))
    if Decimal(repr(number)) != value:
        raise ValueError(value)
    return number


def _json(value: Any) -> orjson.Fragment:
    return orjson.Fragment(encode_exactly(value))


def _text(value: Any) -> str:
    return encode_exactly(value).decode()


def _as_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
