"""Pipelines on a standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.spark.java import find_java
from tests import servers
from tests.spark.conftest import ROOT
from tests.spark.test_faults import cluster
from tests.spark.test_read import publish


def commands_of_the_how_to() -> list[list[str]]:
    """What docs/how-to/run-pipelines-on-a-cluster.md runs there."""
    page = (ROOT / "docs" / "how-to" / "run-pipelines-on-a-cluster.md").read_text()
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (postbus .+)$", page, re.M)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_archives_a_stream_and_reports_on_it(spark_server: servers.Server, tmp_path: Path) -> None:
    with servers.database(spark_server.url) as url, cluster(tmp_path) as master:
        with postbus.connect(url) as bus:
            bus.create_stream("orders", partitions=4)
            publish(bus, "orders", 5000)
            billing = bus.create_consumer("orders", "billing", keep_history=3600, order="none")
            billing.ack(billing.receive(max_messages=5000))

        archive, report = (run(url, master, tmp_path, *arguments) for arguments in commands_of_the_how_to())

        assert archive == {"archived": 5000}
        assert (report["messages"], report["streams"]) == (5000, 1)
        assert "Latency of billing" in (tmp_path / "report.html").read_text()
        # Both workers have worked.
        assert len(list((tmp_path / "work").glob("app-*/*/stderr"))) >= 2 * 2


def run(url: str, master: str, folder: Path, *arguments: str) -> Any:
    """A command as a user types it, with this cluster and this lake instead of those of the page."""
    placed = [word.replace("spark://127.0.0.1:7077", master).replace("/lake", f"{folder}/lake") for word in arguments]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java()),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "POSTBUS_URL": url,
    }
    command = [sys.executable, "-c", "from postbus.cli.main import run; run()", *placed, "--json"]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
