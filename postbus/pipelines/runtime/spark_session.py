"""The Spark that a pipeline runs on: this machine, a cluster, or a server of Spark Connect."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from postbus.model.errors import InvalidInput
from postbus.spark.compat import active
from postbus.spark.java import find_java
from postbus.spark.registration import register, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("postbus.pipelines")

# Spark on this machine starts in less. A cluster may take longer, and nobody should have to wait for it.
_PATIENCE_SECONDS: Final = 10.0
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
    logging.getLogger().addFilter(_is_wanted)
    if remote is not None:
        from pyspark.sql import SparkSession

        if remote.startswith("local"):
            # Spark starts a server here, whose tasks are to find this Python.
            os.environ["JAVA_HOME"] = str(find_java())
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.builder.remote(remote).getOrCreate()
        register(spark)
        with _stopped_at_the_end(spark):
            yield spark
        return
    with ExitStack() as end:
        with _patience():
            spark = session(master=master or "local[*]", name="postbus pipeline", settings=_local(master))
            end.enter_context(_stopped_at_the_end(spark))
        yield spark


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
    with ExitStack() as end:
        with _patience(), warnings.catch_warnings():
            # Of settings that are those of the server, which has them.
            warnings.simplefilter("ignore", UserWarning)
            spark = builder.getOrCreate()
            end.enter_context(_stopped_at_the_end(spark))
            register(spark)
        yield spark


@contextmanager
def _stopped_at_the_end(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        spark.stop()


@contextmanager
def _patience() -> Iterator[None]:
    """Let a Ctrl-C wait until Spark has started: a start that breaks off leaves a Java behind that nobody ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked_at: list[float] = []

    def wait(number: int, frame: Any) -> None:
        if not asked_at:
            _log.warning("ending as soon as Spark has started")
        elif time.monotonic() > asked_at[0] + _PATIENCE_SECONDS:
            raise KeyboardInterrupt
        asked_at.append(time.monotonic())

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        # Spark sets a handler of its own, once there is something to cancel.
        if signal.getsignal(signal.SIGINT) is wait:
            signal.signal(signal.SIGINT, before)
    if asked_at:
        raise KeyboardInterrupt


def _is_wanted(record: logging.LogRecord) -> bool:
    """py4j also writes to the root logger, and with a stack, when somebody presses Ctrl-C."""
    return not str(record.msg).endswith("while sending command.")


def _local(master: str | None) -> dict[str, str]:
    """On this machine nothing listens beyond it, and Spark is quiet from its start."""
    if master is not None and not master.startswith("local"):
        return _QUIET
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging = files("postbus.pipelines.runtime").joinpath("log4j2.properties")
    return {**_QUIET, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{logging}"}


def of_its_own(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark, with the settings of pipelines: the user's keeps its own."""
    own = spark.newSession()
    with active(own):
        register(own)
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own
