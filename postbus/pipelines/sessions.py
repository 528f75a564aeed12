"""The Spark that a pipeline runs on: this machine, a cluster, or a server of Spark Connect."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from postbus.model.errors import InvalidInput
from postbus.spark.compat import active
from postbus.spark.java import find_java
from postbus.spark.registration import register, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
}
_SERVED: Final = {"spark.api.mode": "connect", "spark.connect.grpc.binding.address": "127.0.0.1"}
# What files in a lake must not depend on.
_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # The older type has no statistics, by which readers skip what they do not want.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.python.filterPushdown.enabled": "true",
    # What is shuffled is a few rows for each file.
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}


# They write the errors of Spark to stderr, which a pipeline says in a line.
_TALKERS: Final = ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def started(master: str | None = None, remote: str | None = None) -> Iterator[SparkSession]:
    """A Spark that ends with this: that of a master, of a server of Spark Connect, or of this machine.

    Raises:
        InvalidInput: Both a master and a server are named.
        Unavailable: There is no Java, or it is too old.
    """
    if master is not None and remote is not None:
        raise InvalidInput("a pipeline runs on a master or on a server of Spark Connect, not on both")
    for talker in _TALKERS:
        logging.getLogger(talker).setLevel(logging.CRITICAL)
    if remote is not None:
        from pyspark.sql import SparkSession

        if remote.startswith("local"):
            # Spark starts a server here, whose tasks are to find this Python.
            os.environ["JAVA_HOME"] = str(find_java())
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.builder.remote(remote).getOrCreate()
        register(spark)
    else:
        spark = session(master=master or "local[*]", name="postbus pipeline", settings=_local(master))
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def served(
    master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A Spark that is spoken to over Spark Connect: that of a server, or one that is started here for a master.

    Args:
        master: As of `started`.
        remote: As of `started`.
        settings: Settings of Spark, if it is started here.
    """
    if remote is not None:
        with started(master, remote) as spark:
            yield spark
        return
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master or "local[*]").appName("postbus pipeline")
    for name, value in {**_local(master), **_SERVED, **(settings or {})}.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # Of settings that are those of the server, which has them.
        warnings.simplefilter("ignore", UserWarning)
        spark = builder.getOrCreate()
    register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _local(master: str | None) -> dict[str, str]:
    """On this machine nothing listens beyond it, and Spark is quiet from its start."""
    if master is not None and not master.startswith("local"):
        return _QUIET
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging = files("postbus.pipelines").joinpath("log4j2.properties")
    return {**_QUIET, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{logging}"}


def of_its_own(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark, with the settings of pipelines: the user's keeps its own."""
    own = spark.newSession()
    with active(own):
        register(own)
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own
