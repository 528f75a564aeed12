"""Rows as messages: key, data and headers, or why a row cannot be one.

A DataFrame of rows has `values` (a struct of the columns), `row` (the row as text, as it is put aside), `file` and `problem`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types

from postbus.model.errors import InvalidInput
from postbus.model.keys import FORBIDDEN, MOST_CHARACTERS, parse_template, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from postbus.pipelines.ingest.options import IngestOptions

# A row says null where it has no value, and times in UTC, whatever the session.
JSON: Final = {"ignoreNullFields": "false", "timeZone": "UTC"}
_NESTED: Final = (types.StructType, types.ArrayType, types.MapType)
_AS_JSON: Final = (types.IntegralType, types.DecimalType, types.BooleanType)


def of_table(spark: SparkSession, table: str | None, query: str | None) -> DataFrame:
    """The rows of a table or a query of the user's session."""
    frame = spark.table(table) if table is not None else spark.sql(query or "")
    values = F.struct(*(F.col(f"`{name.replace('`', '``')}`") for name in frame.columns))
    nothing = F.lit(None).cast("string")
    return frame.select(
        values.alias("values"), F.to_json(values, JSON).alias("row"), nothing.alias("file"), nothing.alias("problem")
    )


def is_json(text: Column) -> Column:
    """Whether a text is one JSON value and nothing else: Spark's own parsers do not look at what follows the first."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]"))) == 2
    return alone & F.try_parse_json(text).isNotNull() & F.is_valid_utf8(text)


def as_messages(rows: DataFrame, options: IngestOptions, data_type: str, most_bytes: int) -> DataFrame:
    """The messages of rows: key, data, headers; and problem, file and row, for those that cannot be published.

    Raises:
        InvalidInput: A column that an option names is not there, or cannot be what it is to be.
    """
    schema = rows.schema["values"].dataType
    key, key_problem = _key(schema, options.key)
    data, data_problem = _data(schema, options.data, data_type)
    headers, header_problem = _headers(schema, options.headers)
    size = F.octet_length(data)
    too_large = F.when(size > most_bytes, F.format_string(f"it has %d bytes, and the stream allows {most_bytes}", size))
    found = F.coalesce("problem", key_problem, data_problem, header_problem, too_large)
    return rows.select(
        key.alias("key"), data.alias("data"), headers.alias("headers"), found.alias("problem"), "file", "row"
    )


def _column(schema: Any, name: str) -> tuple[Column, types.DataType]:
    """A column of the rows by its name, or by the way to it through structs: customer.id."""
    value, kind = F.col("values"), schema
    steps = [name] if name in schema.fieldNames() else name.split(".")
    for step in steps:
        if not isinstance(kind, types.StructType) or step not in kind.fieldNames():
            raise unknown_column(name, schema.fieldNames())
        value, kind = value.getField(step), kind[step].dataType
    return value, kind


def _text(schema: Any, name: str, what: str) -> Column:
    value, kind = _column(schema, name)
    if isinstance(kind, (*_NESTED, types.BinaryType, types.VariantType)):
        raise InvalidInput(f'column "{name}" is {kind.simpleString()}, which cannot be part of {what}')
    return value.cast("string")


def _key(schema: Any, written: str | None) -> tuple[Column, Column]:
    """The key by its template, and what is wrong with it."""
    nothing = F.lit(None).cast("string")
    if written is None:
        return nothing, nothing
    template = parse_template(written)
    problems, parts = [], [F.lit(template.texts[0])]
    for name, text in zip(template.columns, template.texts[1:], strict=True):
        value = _text(schema, name, "a key")
        told = F.substring(value, 1, 100)
        problems.append(
            F.when(value.isNull() | (value == ""), F.lit(f'column "{name}" of the key has no value')).when(
                value.rlike(FORBIDDEN) | value.contains("\0") | ~F.is_valid_utf8(value),
                F.concat(F.lit(f'column "{name}" of the key is "'), told, F.lit('", which cannot be a token')),
            )
        )
        parts += [value, F.lit(text)]
    key = F.concat(*parts)
    problems.append(
        F.when(F.length(key) > MOST_CHARACTERS, F.lit(f"the key has more than {MOST_CHARACTERS} characters"))
    )
    return key, F.coalesce(*problems)


def _data(schema: Any, name: str | None, data_type: str) -> tuple[Column, Column]:
    """The data, of the type that the stream holds, and what is wrong with it."""
    nothing = F.lit(None).cast("string")
    if name is None:
        return (F.encode("row", "UTF-8") if data_type == "bytes" else F.col("row")), nothing
    value, kind = _column(schema, name)
    missing = F.when(value.isNull(), F.lit(f'column "{name}" has no value'))
    if isinstance(kind, types.BinaryType):
        if data_type != "bytes":
            raise InvalidInput(f'column "{name}" is binary, and the stream holds {data_type}')
        return value, missing
    if isinstance(kind, (*_NESTED, types.VariantType)):
        text = F.to_json(value, JSON)
    elif data_type == "json" and not isinstance(kind, (types.StringType, *_AS_JSON)):
        raise InvalidInput(
            f'column "{name}" is {kind.simpleString()}, which is no JSON', "take the whole row, or a text"
        )
    else:
        text = value.cast("string")
    if data_type == "bytes":
        return F.encode(text, "UTF-8"), missing
    if data_type == "json" and isinstance(kind, types.StringType):
        return text, F.coalesce(missing, F.when(~is_json(text), F.lit(f'column "{name}" is not JSON')))
    return text, F.coalesce(missing, _not_text(text, name))


def _not_text(text: Column, name: str) -> Column:
    return F.when(
        text.contains("\0") | ~F.is_valid_utf8(text), F.lit(f'column "{name}" is not text that Postgres can hold')
    )


def _headers(schema: Any, wanted: dict[str, str]) -> tuple[Column, Column]:
    """The headers, without those that have no value, and what is wrong with them."""
    nothing = F.lit(None).cast("string")
    if not wanted:
        return F.lit(None).cast("map<string,string>"), nothing
    values = {name: _text(schema, column, "a header") for name, column in wanted.items()}
    pairs: list[Column] = reduce(lambda found, pair: [*found, F.lit(pair[0]), pair[1]], values.items(), [])
    headers = F.map_filter(F.create_map(*pairs), lambda _, value: value.isNotNull())
    return headers, F.coalesce(*(_not_text(value, wanted[name]) for name, value in values.items()), nothing)
