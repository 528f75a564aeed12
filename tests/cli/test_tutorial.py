"""The tutorial runs, command by command, and prints what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import postbus
from postbus.cli import output
from postbus.cli.main import build, called
from tests import servers
from tests.waiting import until

pytestmark = pytest.mark.newest_server

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-consumer.md"
ACK_ID = re.compile(r"[0-9a-f]{16}-\d+")


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Each command of the page, and what it should print."""
    for block in re.findall(r"```console\n(.*?)```", page, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def pattern_of(printed: str) -> str:
    """What is printed, where "…" stands for anything, an ack id for any other, and columns may be wider."""
    pattern = re.escape(printed.strip()).replace("…", ".*?")
    pattern = re.sub(r"[0-9a-f]{16}\\-\d+", r"[0-9a-f]{16}-\\d+", pattern)
    return re.sub(r"(\\ )+", r"\\s+", pattern)


class Terminal:
    """Runs commands in a folder of its own, with a bus of its own."""

    def __init__(self, folder: Path, data_dir: Path, port: int) -> None:
        self.folder, self.port = folder, port
        clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
        self.environment = {
            **clean,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "POSTBUS_CONTEXTS": str(folder / "contexts.json"),
            "TZ": "UTC",
        }
        self.data_dir = data_dir
        self.ack_id = ""

    def start(self) -> subprocess.Popen[str]:
        """The server of the first terminal."""
        command = ["postbus", "up", "--port", str(self.port), "--no-access-log", "--data-dir", str(self.data_dir)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment, cwd=self.folder)

    def run(self, command: str) -> str:
        """What it printed; an ack id in it is the last that was seen."""
        command = ACK_ID.sub(self.ack_id, command).replace("7376", str(self.port))
        is_plain = command.startswith("postbus ") and "|" not in command
        said = self._run_here(command) if is_plain else self._run_in_bash(command)
        if found := ACK_ID.search(said):
            self.ack_id = found[0]
        return said.strip().replace(str(self.port), "7376")

    def _run_in_bash(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=self.environment,
            cwd=self.folder,
        ).stdout

    def _run_here(self, command: str) -> str:
        """In this process, which is much faster."""
        arguments = shlex.split(command)[1:]
        result = CliRunner(env=self.environment).invoke(build(called(arguments)), arguments)
        said = result.output
        if isinstance(result.exception, postbus.Error):
            return f"{said}error: {result.exception.message}\nhint:  {result.exception.hint_for('command line')}"
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return said


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The page shows what a reader sees. In a pipe of the page it is a pipe still.
    monkeypatch.setattr(output, "is_for_people", lambda: True)
    page = PAGE.read_text()
    (script,) = re.findall(r"```bash\n(.*?)```", page, re.S)
    (tmp_path / "billing.sh").write_text(script)
    (first, _), *rest = steps(page)
    assert first == "postbus up"
    assert len(rest) > 20
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with servers.data_directory() as data_dir:
        terminal = Terminal(tmp_path, data_dir, port)
        with terminal.start() as server:
            try:
                assert server.stdout is not None
                until(server.stdout.readline, "it is up")
                for command, printed in rest:
                    said = terminal.run(command)
                    assert re.fullmatch(pattern_of(printed), said, re.S), f"$ {command}\n{said}\n\nexpected:\n{printed}"
            finally:
                server.send_signal(signal.SIGINT)
