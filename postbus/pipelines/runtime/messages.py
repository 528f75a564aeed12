"""Results of transforms as messages, and messages that do not fit a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types

from postbus.model.errors import InvalidInput
from postbus.spark.columns import CORRUPT
from postbus.spark.writer import check_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORDER: Final = "seq"
_OF_MESSAGES: Final = ("key", "headers", "deliver_at", ORDER)
# What `select *` brings along, and no publisher can set.
_OF_READERS: Final = ("partition", "published_at", CORRUPT)
_MARKS: Final = ("postbus-stream", "postbus-seq", "postbus-reason")
_KINDS: Final = (types.StructType, types.MapType, types.ArrayType, types.VariantType)


def as_messages(frame: DataFrame, data_type: str) -> DataFrame:
    """The columns that are published, and `seq` if there is one, which says in what order.

    Without a column data, the columns that have no meaning of their own become its fields. A struct becomes JSON.

    Raises:
        InvalidInput: It has columns that cannot be published.
    """
    if "data" in frame.columns:
        frame = frame.drop(*_OF_READERS)
        if data_type == "json" and isinstance(frame.schema["data"].dataType, _KINDS):
            frame = frame.withColumn("data", F.to_json("data"))
    else:
        fields = [name for name in frame.columns if name not in _OF_MESSAGES]
        if not fields or data_type != "json":
            raise InvalidInput(
                "the result has no column data", "select key, data, and headers, deliver_at or priority if need be"
            )
        data = F.to_json(F.struct(*(F.col(f"`{name}`") for name in fields))).alias("data")
        frame = frame.select(*(name for name in frame.columns if name in _OF_MESSAGES), data)
    check_columns(frame.drop(ORDER).schema, data_type)
    return frame


def in_order(frame: DataFrame) -> DataFrame:
    """What is published: with a column seq, messages of a key in that order, however Spark has mixed them."""
    if ORDER not in frame.columns:
        return frame
    if "key" in frame.columns:
        frame = frame.repartition("key")
    return frame.sortWithinPartitions(ORDER).drop(ORDER)


def only_good(frame: DataFrame) -> DataFrame:
    """Without the messages that do not fit the schema."""
    return frame.where(F.col(CORRUPT).isNull())


def only_bad(frame: DataFrame, stream: str) -> DataFrame:
    """The messages that do not fit, as they were, with headers that say where they are from."""
    headers = marked(stream, F.lit("it does not fit the schema of its data"))
    return frame.where(F.col(CORRUPT).isNotNull()).select("key", F.col(CORRUPT).alias("data"), headers)


def marked(stream: str, reason: Column) -> Column:
    """The headers of a message that is put aside: its own, and from where it is, and why."""
    values = (F.lit(stream), F.col("seq").cast("string"), reason)
    marks = F.create_map(*(part for pair in zip(map(F.lit, _MARKS), values, strict=True) for part in pair))
    # One that was put aside before has them already.
    own = F.coalesce("headers", F.create_map().cast("map<string,string>"))
    return F.map_concat(F.map_filter(own, lambda name, _: ~name.isin(*_MARKS)), marks).alias("headers")
