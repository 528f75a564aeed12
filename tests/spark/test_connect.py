"""Spark Connect, and declarative pipelines, which run over it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import postbus
from postbus.spark.java import find_java
from tests import servers
from tests.spark.conftest import ROOT
from tests.spark.test_read import publish

EXAMPLE = ROOT / "examples" / "declarative-pipeline"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(command: list[str], folder: Path, **variables: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_client_of_spark_connect_reads_writes_and_follows(
    bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    publish(bus, stream, 20)

    said = run([sys.executable, "-m", "tests.spark.over_connect", url, stream, target, str(tmp_path)], tmp_path)

    assert said.split() == ["pyspark.sql.connect.session", "20", "3"]
    assert sorted(message.data["n"] for message in bus.scan(target)) == list(range(20))


def test_a_transform_runs_on_a_server_of_spark_connect(
    bus: postbus.Bus, url: str, stream: str, target: str, tmp_path: Path
) -> None:
    publish(bus, stream, 20)
    command = [str(Path(sys.executable).parent / "postbus"), "pipeline", "run", "transform", stream, "--into", target]
    command += ["--sql", f"select key, data from `{stream}` where seq % 2 = 0", "--remote", "local[2]", "--json"]

    said = run([*command, "--checkpoint", str(tmp_path / "checkpoint"), "--url", url], tmp_path)

    assert json.loads(said) == {
        "transformed": 20,
        "read": 20,
        "published": 10,
        "aside": 0,
        "late": 0,
        "filtered": 10,
    }
    (known,) = [each for each in bus.list_pipelines() if each.stream == stream]
    assert (known.state, known.message_count) == ("done", 20)


def test_the_declarative_pipeline_of_the_examples_fills_a_stream(spark_server: servers.Server, tmp_path: Path) -> None:
    import pyspark

    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")]
    command += ["run", "--spec", str(folder / "spark-pipeline.yml")]
    specification = (folder / "spark-pipeline.yml").read_text()
    storage = f"storage: file://{tmp_path}/storage"
    (folder / "spark-pipeline.yml").write_text(specification.replace("storage: storage", storage))
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        bus.create_stream("orders", partitions=1)
        bus.create_stream("large-orders", partitions=1)
        orders = [{"customer": f"c{n}", "quantity": n} for n in range(20)]
        bus.publish_many("orders", [postbus.Message(key=f"o.{order['quantity']}", data=order) for order in orders])
        run(command, tmp_path, POSTBUS_URL=url)

        found = sorted((message.data["quantity"], message.key) for message in bus.scan("large-orders"))

    assert found == [(n, f"o.{n}") for n in range(10, 20)]
