"""Files of rows: JSON lines, CSV and Parquet, read by one schema. A row that does not fit it keeps its text, and says why.

Spark itself would leave out fields that a schema does not name, take the columns of CSV by their place whatever the header
says, and fail on a Parquet file with another type. Here such rows are told apart, so that nothing is lost in silence.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types

from postbus.model.errors import InvalidInput
from postbus.pipelines.ingest.listing import Format, Listed, in_order, parts_in_order
from postbus.pipelines.ingest.rows import JSON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT: Final = "_postbus_corrupt"
# Where a row is from.
_FILE: Final = "_postbus_file"
_AT: Final = "_postbus_at"
_START: Final = "_postbus_start"
_PLACE: Final = "_postbus_place"
# What Spark lets pass and Postgres does not.
_STRICT: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_PERMISSIVE: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_SETTINGS: Final = {
    "spark.sql.caseSensitive": "true",
    # With them, whether a line fits would depend on which columns are asked for.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.csv.filterPushdown.enabled": "false",
}


def prepare(spark: SparkSession) -> None:
    """The settings that reading depends on."""
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)


def infer_schema(spark: SparkSession, form: Format, paths: list[str]) -> str:
    """The columns of files and their types, as the JSON of a StructType."""
    if form.name == "json":
        schema = _reader(spark).options(**_STRICT, **_PERMISSIVE).json(_literal(paths)).schema
        groups = [types.StructType([field for field in schema.fields if field.name != _CORRUPT])]
    elif form.name == "csv":
        groups = [
            _reader(spark).options(**form.csv(), inferSchema="true").csv(_literal(group)).schema
            for _, group in _by_header(spark, form, paths)
        ]
    else:
        groups = [schema for schema, _ in _by_schema(spark, paths, None)]
    merged: dict[str, types.StructField] = {}
    for schema in groups:
        for field in schema.fields:
            known = merged.get(field.name)
            kind = field.dataType if known is None or known.dataType == field.dataType else types.StringType()
            merged[field.name] = types.StructField(field.name, kind)
    if not merged:
        raise InvalidInput(f"no columns were found in {paths[0]}", "name them: --schema 'id bigint, name string'")
    return types.StructType(list(merged.values())).json()


def read_files(spark: SparkSession, form: Format, listed: Sequence[Listed], written: str) -> DataFrame:
    """The rows of files, in the order of the files and in which they lie there: values, row, file, problem.

    Raises:
        InvalidInput: The schema is not one.
    """
    schema = parse_schema(written)
    paths = [file.path for file in listed]
    if form.name == "json":
        frames = [_read_json(spark, group, schema) for group in in_order(spark, listed)]
    elif form.name == "csv":
        frames = [
            _read_csv(spark, form, group, names, schema)
            for names, group in parts_in_order(spark, listed, _by_header(spark, form, paths))
        ]
    else:
        frames = [
            _read_parquet(spark, group, found, schema)
            for found, group in parts_in_order(spark, listed, _by_schema(spark, paths, schema))
        ]
    return reduce(lambda first, other: first.union(other), frames)


def parse_schema(written: str) -> types.StructType:
    """A schema as users write it, or as it was remembered.

    Raises:
        InvalidInput: It is not one.
    """
    is_remembered = written.lstrip().startswith("{")
    try:
        found = types.StructType.fromJson(json.loads(written)) if is_remembered else types.StructType.fromDDL(written)
    except (ParseException, ValueError, KeyError) as error:
        raise _no_schema(written) from error
    if not isinstance(found, types.StructType):
        raise _no_schema(written)
    # Files are not asked whether a column may be empty.
    return types.StructType([types.StructField(field.name, field.dataType) for field in found.fields])


def _no_schema(written: str) -> InvalidInput:
    return InvalidInput(f'"{written}" is not a schema', "write it as 'id bigint, name string, price double'")


def _reader(spark: SparkSession) -> Any:
    prepare(spark)
    return spark.read.option("recursiveFileLookup", "true")


def _literal(paths: list[str]) -> list[str]:
    """Paths that mean themselves, though they have characters of patterns."""
    return [re.sub(r"([\\\[\]{}*?])", r"\\\1", path) for path in paths]


def _placed(frame: DataFrame, paths: list[str]) -> DataFrame:
    """The rows of files with the path of their file; in the order of the files, by time and name, if there are several."""
    file = F.col("_metadata.file_path").alias(_FILE)
    if len(paths) == 1:
        return frame.select("*", file)
    at = F.col("_metadata.file_modification_time").alias(_AT)
    start = F.col("_metadata.file_block_start").alias(_START)
    placed = frame.select("*", file, at, start).coalesce(1).withColumn(_PLACE, F.monotonically_increasing_id())
    return placed.sortWithinPartitions(_AT, _FILE, _START, _PLACE)


def _rows(frame: DataFrame, values: Column, row: Column, problem: Column) -> DataFrame:
    file = F.url_decode(F.replace(F.col(_FILE), F.lit("+"), F.lit("%2B")))
    return frame.select(values.alias("values"), row.alias("row"), file.alias("file"), problem.alias("problem"))


def _read_json(spark: SparkSession, paths: list[str], schema: types.StructType) -> DataFrame:
    text = F.col("value")
    lines = _placed(_reader(spark).text(_literal(paths)).where(F.trim(text) != ""), paths)
    parsed, problem = _parsed(lines, schema)
    values = F.struct(*(F.col("parsed")[name].alias(name) for name in schema.fieldNames()))
    return _rows(parsed, values, F.make_valid_utf8(text), problem)


def read_aside(spark: SparkSession, form: Format, rows: DataFrame, written: str) -> DataFrame:
    """Rows that went aside, as columns row and file: as `read_files` gives them, by another schema."""
    prepare(spark)
    schema = parse_schema(written)
    names = schema.fieldNames()
    lines = rows.select(F.col("row").alias("value"), "file")
    if form.name == "csv":
        # Their values are texts, whatever they look like.
        texts = F.from_json("value", types.StructType([types.StructField(name, types.StringType()) for name in names]))
        parsed, problem = _parsed(lines.withColumn("texts", texts), None)
        misfits = F.array_compact(F.array(F.lit(None).cast("string"), *(_misfit(schema[name]) for name in names)))
        problem = F.coalesce(
            problem,
            _unknown(names),
            F.when(F.size(misfits) > 0, _told("does not fit its type in the schema: ", misfits)),
        )
        values = F.struct(*(F.col("texts")[name].try_cast(schema[name].dataType).alias(name) for name in names))
    else:
        parsed, problem = _parsed(lines, schema)
        values = F.struct(*(F.col("parsed")[name].alias(name) for name in names))
    # A line of JSON stays as it is.
    row = (
        F.col("value")
        if form.name == "json"
        else F.when(problem.isNull(), F.to_json(values, JSON)).otherwise(F.col("value"))
    )
    return parsed.select(values.alias("values"), row.alias("row"), "file", problem.alias("problem"))


def _misfit(field: types.StructField) -> Column:
    text = F.col("texts")[field.name]
    return F.when(text.isNotNull() & text.try_cast(field.dataType).isNull(), F.lit(field.name))


def _unknown(names: list[str]) -> Column:
    found = F.array_except(F.json_object_keys(F.col("value")), F.array(*(F.lit(name) for name in names)))
    return F.when(F.size(found) > 0, _told("not in the schema: ", found))


def _parsed(lines: DataFrame, schema: types.StructType | None) -> tuple[DataFrame, Column]:
    """Lines with a column `parsed`, and what is wrong with each; without a schema, only whether it is a JSON object."""
    text = F.col("value")
    if schema is None:
        return lines, F.when(F.json_object_keys(text).isNull(), F.lit("it is not a JSON object"))
    names = schema.fieldNames()
    with_corrupt = types.StructType([*schema.fields, types.StructField(_CORRUPT, types.StringType())])
    frame = lines.withColumn("parsed", F.from_json(text, with_corrupt, {**_STRICT, **_PERMISSIVE}))
    keys = F.json_object_keys(text)
    misfits = F.array_compact(
        F.array(
            *(
                F.when(F.col("parsed")[name].isNull() & _has(text, name), F.lit(name)).otherwise(F.lit(None))
                for name in names
            )
        )
    )
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]"))) == 2
    is_corrupt = F.col("parsed").isNull() | F.col("parsed")[_CORRUPT].isNotNull()
    problem = (
        F.when(~F.is_valid_utf8(text), F.lit("it is not UTF-8"))
        .when(keys.isNull() | ~F.coalesce(alone, F.lit(False)), F.lit("it is not a JSON object"))
        .when(_unknown(names).isNotNull(), _unknown(names))
        .when(is_corrupt & F.try_parse_json(text).isNull(), F.lit("it is not a JSON object"))
        .when(is_corrupt & (F.size(misfits) > 0), _told("does not fit its type in the schema: ", misfits))
        .when(is_corrupt, F.lit("it is not JSON that fits the schema"))
    )
    return frame, problem


def _has(text: Column, name: str) -> Column:
    return F.get_json_object(text, f"$['{name}']").isNotNull() if "'" not in name else F.lit(False)


def _told(what: str, names: Column) -> Column:
    return F.concat(F.lit(f"column {what}"), F.array_join(names, ", "))


def _by_header(spark: SparkSession, form: Format, paths: list[str]) -> list[tuple[tuple[str, ...], list[str]]]:
    """CSV files by the names of their columns."""
    lines = _reader(spark).text(_literal(paths))
    at_start = lines.select(
        "value",
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("start"),
        F.monotonically_increasing_id().alias("place"),
    ).where((F.col("start") == 0) & (F.trim("value") != ""))
    rows = at_start.groupBy("path").agg(F.min_by("value", "place").alias("header")).collect()
    headers = {_plain(row.path): row.header.removeprefix("\ufeff") for row in rows}
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        # A file without a line has no rows either.
        if line := headers.get(_plain(path)):
            (names,) = csv.reader([line], delimiter=form.separator)
            groups.setdefault(tuple(name.strip() for name in names), []).append(path)
    return list(groups.items()) or [((), paths)]


def _plain(uri: str) -> str:
    """A path, however it is written."""
    return re.sub("^file:/+", "/", unquote(uri))


def _read_csv(
    spark: SparkSession, form: Format, paths: list[str], names: tuple[str, ...], schema: types.StructType
) -> DataFrame:
    found = types.StructType(
        [
            types.StructField(name, schema[name].dataType if name in schema.fieldNames() else types.StringType())
            for name in names
        ]
    )
    if len(set(names)) < len(names):
        raise InvalidInput(f"the header of {paths[0]} names a column twice: {', '.join(names)}")
    with_corrupt = found.add(types.StructField(_CORRUPT, types.StringType()))
    read = _reader(spark).schema(with_corrupt).options(**form.csv(), **_PERMISSIVE).csv(_literal(paths))
    frame = _placed(read, paths)
    corrupt = F.col(_CORRUPT)
    unknown = [name for name in names if name not in schema.fieldNames()]
    problem = F.when(
        corrupt.isNotNull(),
        F.lit("the line has another number of values than the header, or one does not fit its type"),
    )
    if unknown:
        problem = _of_all(f"column not in the schema: {', '.join(unknown)}")
    all_values = _struct(names)
    row = F.coalesce(F.make_valid_utf8(corrupt), F.to_json(all_values if unknown else _conformed(schema, found), JSON))
    return _rows(frame, _conformed(schema, found), row, problem)


def _by_schema(
    spark: SparkSession, paths: list[str], wanted: types.StructType | None
) -> list[tuple[types.StructType, list[str]]]:
    """Parquet files by their schemas; in one group when all of them have no more than what is wanted."""
    try:
        merged = _reader(spark).option("mergeSchema", "true").parquet(*_literal(paths)).schema
        if wanted is None or {(f.name, f.dataType) for f in merged.fields} <= {
            (f.name, f.dataType) for f in wanted.fields
        }:
            return [(merged, paths)]
    except AnalysisException:
        raise
    except Exception:  # noqa: S110
        # Types that do not go together: then file by file.
        pass
    groups: dict[str, tuple[types.StructType, list[str]]] = {}
    for path in paths:
        schema = _reader(spark).parquet(*_literal([path])).schema
        groups.setdefault(schema.json(), (schema, []))[1].append(path)
    return list(groups.values())


def _read_parquet(
    spark: SparkSession, paths: list[str], found: types.StructType, schema: types.StructType
) -> DataFrame:
    frame = _placed(_reader(spark).schema(found).parquet(*_literal(paths)), paths)
    names = found.fieldNames()
    unknown = [name for name in names if name not in schema.fieldNames()]
    misfits = F.array_compact(
        F.array(
            F.lit(None).cast("string"),
            *(
                F.when(_col(f.name).isNotNull() & _col(f.name).try_cast(f.dataType).isNull(), F.lit(f.name))
                for f in schema.fields
                if f.name in names and f.dataType != found[f.name].dataType
            ),
        )
    )
    problem = F.when(F.size(misfits) > 0, _told("does not fit its type in the schema: ", misfits))
    if unknown:
        problem = _of_all(f"column not in the schema: {', '.join(unknown)}")
    conformed = _conformed(schema, found)
    row = F.when(problem.isNull(), F.to_json(conformed, JSON)).otherwise(F.to_json(_struct(tuple(names)), JSON))
    return _rows(frame, conformed, row, problem)


def _of_all(problem: str) -> Column:
    """A problem of all rows of a file.

    Not a literal: Spark would then see that no row is published, and not even read the file, so that nobody counted the rows.
    """
    return F.when(F.length(_FILE) >= 0, F.lit(problem))


def _conformed(schema: types.StructType, found: types.StructType) -> Column:
    """The columns of a schema, of what a file has; null where it has none."""
    columns = []
    for field in schema.fields:
        if field.name not in found.fieldNames():
            value = F.lit(None).cast(field.dataType)
        elif found[field.name].dataType == field.dataType:
            value = _col(field.name)
        else:
            value = _col(field.name).try_cast(field.dataType)
        columns.append(value.alias(field.name))
    return F.struct(*columns)


def _struct(names: tuple[str, ...]) -> Column:
    return F.struct(*(_col(name).alias(name) for name in names))


def _col(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")
