"""Messages as columns: what Postgres sends, turned into the Arrow columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, Final

import orjson
from pyspark.sql import types

from postbus.codec.content import decode_json
from postbus.codec.exact_json import decode_exactly
from postbus.model.errors import InvalidInput
from postbus.model.partitioning import priority_of
from postbus.spark.compat import arrow_schema

CORRUPT: Final = "_corrupt"
_SHOWN: Final = 200
# Python's own context rounds after 28 digits.
_WIDE: Final = Context(prec=100)
_HEADERS: Final = types.MapType(types.StringType(), types.StringType())
_TYPES: Final[dict[str, types.DataType]] = {
    "key": types.StringType(),
    "headers": _HEADERS,
    "partition": types.IntegerType(),
    "seq": types.LongType(),
    "published_at": types.TimestampType(),
    "priority": types.IntegerType(),
    CORRUPT: types.StringType(),
    # Only for those who ask for it by a schema of their own: how many bytes data has.
    "size": types.IntegerType(),
}
# Columns that are worked out here, and from which.
_MADE_OF: Final = {CORRUPT: "data", "priority": "partition"}
_Converter = Callable[[Any], Any]


def schema_for(data_type: str, data_schema: str | None, *, has_priority: bool = False) -> types.StructType | str:
    """The columns of a stream with that type of data; as a DDL string when the schema of its data is one.

    Raises:
        InvalidInput: data_schema is for json streams only, or is not a schema.
    """
    tail = "headers MAP<STRING, STRING>, partition INT NOT NULL, seq BIGINT NOT NULL, published_at TIMESTAMP NOT NULL"
    if has_priority:
        tail += ", priority INT NOT NULL"
    if data_schema is None:
        return f"key STRING, data {'BINARY' if data_type == 'bytes' else 'STRING'} NOT NULL, {tail}"
    if data_type != "json":
        raise InvalidInput(f"option dataSchema is for json streams, and this one holds {data_type}")
    if not data_schema.lstrip().startswith("{"):
        # Spark itself parses it: this process has no session that could.
        return f"key STRING, data STRUCT<{data_schema}>, {tail}, {CORRUPT} STRING"
    try:
        data = types.StructType.fromJson(orjson.loads(data_schema))
    except Exception as error:
        raise InvalidInput(
            "option dataSchema is not a schema", 'write "quantity INT, price DOUBLE", or the JSON of a StructType'
        ) from error
    fields = [types.StructField("key", types.StringType()), types.StructField("data", data)]
    for name, nullable in (
        ("headers", True),
        ("partition", False),
        ("seq", False),
        ("published_at", False),
        *([("priority", False)] if has_priority else []),
        (CORRUPT, True),
    ):
        fields.append(types.StructField(name, _TYPES[name], nullable))
    return types.StructType(fields)


def check_schema(schema: types.StructType, data_type: str) -> None:
    """Refuse a schema that the user gave and that these messages cannot have.

    Raises:
        InvalidInput: A column is unknown, or of another type.
    """
    for field in schema.fields:
        if field.name == "data":
            _check_data(field.dataType, data_type)
        elif field.name not in _TYPES:
            raise InvalidInput(
                f'a stream has no column "{field.name}"',
                f"it has data, {', '.join(_TYPES)}; fields of JSON are in data",
            )
        elif field.dataType != _TYPES[field.name]:
            raise InvalidInput(
                f"column {field.name} is {_TYPES[field.name].simpleString()}, not {field.dataType.simpleString()}"
            )


def _check_data(wanted: types.DataType, data_type: str) -> None:
    if isinstance(wanted, types.StructType) and data_type == "json":
        converter(wanted)
        return
    if not isinstance(wanted, types.BinaryType if data_type == "bytes" else types.StringType):
        raise InvalidInput(f"the stream holds {data_type}, so column data cannot be {wanted.simpleString()}")


def fetched_columns(schema: types.StructType) -> list[str]:
    """What has to be asked from Postgres for these columns."""
    names = [_MADE_OF.get(name, name) for name in schema.fieldNames()]
    return list(dict.fromkeys(names)) or ["seq"]


class Columns:
    """Turns what `read_batches` yields into the batches of a DataFrame."""

    def __init__(self, schema: types.StructType, *, is_strict: bool = False) -> None:
        self._schema = schema
        self._is_strict = is_strict
        self._arrow_schema = arrow_schema(schema)
        data = schema["data"].dataType if "data" in schema.fieldNames() else None
        self._parse = converter(data) if isinstance(data, types.StructType) else None
        has_decimals = data is not None and "decimal(" in data.simpleString()
        self._decode = decode_exactly if has_decimals else decode_json

    def convert(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield self._converted(batch)

    def _converted(self, batch: Any) -> Any:
        import pyarrow

        parsed, corrupt = self._parsed(_plain(batch.column("data"))) if self._parse else (None, None)
        if self._is_strict and corrupt is not None:
            _refuse(batch, corrupt)
        columns = []
        for field in self._arrow_schema:
            if field.name == "data" and parsed is not None:
                columns.append(pyarrow.array(parsed, type=field.type))
            elif field.name == CORRUPT:
                columns.append(pyarrow.array(corrupt or [None] * batch.num_rows, type=field.type))
            elif field.name == "priority":
                columns.append(_priorities(_plain(batch.column("partition")), field.type))
            elif field.name == "headers":
                columns.append(_headers(_plain(batch.column("headers")), field.type))
            else:
                columns.append(_cast(_plain(batch.column(field.name)), field.type))
        return pyarrow.RecordBatch.from_arrays(columns, schema=self._arrow_schema)

    def _parsed(self, texts: Any) -> tuple[list[Any], list[str | None]]:
        """Each message by the schema, or as it is where it does not fit."""
        assert self._parse is not None  # noqa: S101
        rows: list[Any] = []
        corrupt: list[str | None] = []
        for text in texts.to_pylist():
            try:
                rows.append(self._parse(self._decode(text)))
                corrupt.append(None)
            except (ValueError, TypeError, OverflowError, ArithmeticError):
                rows.append(None)
                corrupt.append(text)
        return rows, corrupt


def _refuse(batch: Any, corrupt: list[str | None]) -> None:
    """Fail at the first message that does not fit.

    Raises:
        InvalidInput: There is one.
    """
    for place, text in enumerate(corrupt):
        if text is not None:
            which = f"message {batch.column('seq')[place].as_py()}" if "seq" in batch.schema.names else "a message"
            raise InvalidInput(
                f"{which} does not fit the schema of its data: {text[:_SHOWN]}", "let such messages be put aside"
            )


def _plain(column: Any) -> Any:
    """A column without the extension type that ADBC gives to JSON."""
    return getattr(column, "storage", column)


def _cast(column: Any, wanted: Any) -> Any:
    return column if column.type == wanted else column.cast(wanted)


def _priorities(partitions: Any, wanted: Any) -> Any:
    """See `priority_of`; few partitions come again and again."""
    import pyarrow

    encoded = partitions.dictionary_encode()
    known = pyarrow.array([priority_of(partition) for partition in encoded.dictionary.to_pylist()], type=wanted)
    return known.take(encoded.indices)


def _headers(texts: Any, wanted: Any) -> Any:
    import pyarrow

    if texts.null_count == len(texts):
        return pyarrow.nulls(len(texts), wanted)
    if pyarrow.types.is_map(texts.type):
        return pyarrow.array(texts.to_pylist(), type=wanted)
    return pyarrow.array(
        [None if text is None else list(orjson.loads(text).items()) for text in texts.to_pylist()], type=wanted
    )


def converter(wanted: types.DataType) -> _Converter:
    """A function that turns a JSON value into what Arrow takes for that type, and raises where it does not fit.

    Strict: a number is not made a string, nor a fraction an integer. Fields that the schema does not name are left out,
    those that JSON lacks are null.
    """
    if isinstance(wanted, types.StructType):
        return _struct(wanted)
    if isinstance(wanted, types.ArrayType):
        element = _nullable(converter(wanted.elementType))
        return lambda value: [element(item) for item in _checked(value, list)]
    if isinstance(wanted, types.MapType) and isinstance(wanted.keyType, types.StringType):
        inner = _nullable(converter(wanted.valueType))
        return lambda value: [(key, inner(item)) for key, item in _checked(value, dict).items()]
    if isinstance(wanted, types.DecimalType):
        return _decimal(wanted)
    for kind, convert in _SIMPLE:
        if isinstance(wanted, kind):
            return convert
    raise InvalidInput(
        f"JSON cannot be read as {wanted.simpleString()}", "read data as a string and use Spark's from_json"
    )


def _struct(wanted: types.StructType) -> _Converter:
    fields = [(field.name, _nullable(converter(field.dataType)), field.nullable) for field in wanted.fields]

    def convert(value: Any) -> dict[str, Any]:
        members = _checked(value, dict)
        row = {name: inner(members.get(name)) for name, inner, _ in fields}
        for name, _, nullable in fields:
            if not nullable and row[name] is None:
                raise ValueError(name)
        return row

    return convert


def _nullable(convert: _Converter) -> _Converter:
    return lambda value: None if value is None else convert(value)


def _checked(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(type(value).__name__)
    return value


def _integer(bits: int) -> _Converter:
    limit = 1 << (bits - 1)

    def convert(value: Any) -> int:
        number: int = _checked(value, int)
        if not -limit <= number < limit:
            raise OverflowError(number)
        return number

    return convert


def _decimal(wanted: types.DecimalType) -> _Converter:
    def convert(value: Any) -> Decimal:
        number = Decimal(str(_checked(value, int, float, Decimal, str)))
        fitted = number.quantize(Decimal(1).scaleb(-wanted.scale), context=_WIDE)
        if fitted != number or len(fitted.as_tuple().digits) > wanted.precision:
            raise OverflowError(number)
        return fitted

    return convert


def _time(value: Any) -> datetime:
    moment = datetime.fromisoformat(_checked(value, str))
    if moment.tzinfo is None:
        raise ValueError(value)
    return moment


_SIMPLE: Final[tuple[tuple[type[types.DataType], _Converter], ...]] = (
    (types.StringType, lambda value: _checked(value, str)),
    (types.BooleanType, lambda value: _checked(value, bool)),
    (types.ByteType, _integer(8)),
    (types.ShortType, _integer(16)),
    (types.IntegerType, _integer(32)),
    (types.LongType, _integer(64)),
    (types.FloatType, lambda value: float(_checked(value, int, float, Decimal))),
    (types.DoubleType, lambda value: float(_checked(value, int, float, Decimal))),
    (types.TimestampType, _time),
    (types.DateType, lambda value: date.fromisoformat(_checked(value, str))),
)
