from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.spark.java import find_java
from tests import servers

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark_server() -> Iterator[servers.Server]:
    """One Postgres: what Spark does is the same on all."""
    with servers.running("pg18") as server:
        yield server


@pytest.fixture(scope="session")
def url(spark_server: servers.Server) -> Iterator[str]:
    with servers.database(spark_server.url) as url:
        yield url


@pytest.fixture(scope="session")
def bus(url: str) -> Iterator[postbus.Bus]:
    with postbus.connect(url) as bus:
        yield bus


@pytest.fixture
def stream(bus: postbus.Bus, name: str) -> str:
    """A json stream with four partitions."""
    bus.create_stream(name, partitions=4)
    return name


@pytest.fixture
def target(bus: postbus.Bus, name: str) -> str:
    """Another, with three."""
    bus.create_stream(f"{name}-target", partitions=3)
    return f"{name}-target"


@pytest.fixture(scope="session")
def spark(url: str) -> Iterator[Any]:
    """A real Spark with two cores, where a task may fail twice. It finds the data source by itself."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # An editable install is not among the folders that Spark looks through.
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["POSTBUS_OF_SPARK_TESTS"] = url
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        # The queries are small: compiling them would take longer than running them.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
