"""Ctrl-C while Spark starts: the command ends without a stack, and no Java is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import postbus
from tests import servers
from tests.waiting import until


@pytest.mark.parametrize("sign", ["", "Setting default log level"])
def test_a_command_that_is_interrupted_while_spark_starts_leaves_nothing(
    spark_server: servers.Server, tmp_path: Path, sign: str
) -> None:
    said = tmp_path / "said"
    with servers.database(spark_server.url) as url, said.open("w") as output:
        with postbus.connect(url) as bus:
            bus.create_stream("orders")
        command = [str(Path(sys.executable).with_name("postbus")), "pipeline", "run", "archive", "orders"]
        process = subprocess.Popen(
            [*command, "--to", str(tmp_path / "lake"), "--url", url],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            until(lambda: "java" in _programs(process.pid) and sign in said.read_text(), "Spark starts")
            # As a terminal does: to all of the group.
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(30) == 130
            until(lambda: not _programs(process.pid), "no process is left")
        finally:
            if _programs(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert "Traceback" not in said.read_text()
    assert "\tat " not in said.read_text()


def _programs(group: int) -> list[str]:
    """The names of the programs of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, _, of_group = rest.split()[:3]
        if int(of_group) == group and state != "Z":
            found.append(name)
    return found
