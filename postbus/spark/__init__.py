"""Streams as DataFrames, both ways: `spark.read`, `readStream`, `write` and `writeStream` with `format("postbus")`.

    import postbus.spark

    spark = postbus.spark.session()          # or any SparkSession of yours, and postbus.spark.register(spark)
    orders = spark.read.format("postbus").option("url", url).option("stream", "orders").load()

`PostbusDataSource` says what options and columns there are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from postbus.spark.missing import explained

if TYPE_CHECKING:
    from postbus.spark.registration import register, session
    from postbus.spark.source import PostbusDataSource

__all__ = ["PostbusDataSource", "register", "session"]

_HOMES = {
    "register": "postbus.spark.registration",
    "session": "postbus.spark.registration",
    "PostbusDataSource": "postbus.spark.source",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise explained(error) from error
    return value
