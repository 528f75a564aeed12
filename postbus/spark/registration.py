"""Makes `format("postbus")` known to Spark, and starts a Spark on this machine that knows it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from postbus.spark.java import find_java
from postbus.spark.source import PostbusDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("postbus")` known to a session, also one of Spark Connect.

    Not needed where Postbus is installed on the machine of the driver: Spark finds it by itself.
    """
    spark.dataSource.register(PostbusDataSource)


def session(
    *, master: str = "local[*]", name: str = "postbus", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The running SparkSession, or a new one on this machine, with `format("postbus")` and filter pushdown.

    Args:
        master: Which Spark runs it; the default is this machine with all its cores.
        name: What the application is called.
        settings: Settings of Spark, before all others.

    Raises:
        Unavailable: There is no Java, or it is too old; the hint says what to install.
    """
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    if master.startswith("local"):
        # Else tasks run with the first python3 of PATH, which may lack Postbus.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {"spark.sql.python.filterPushdown.enabled": "true", **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
