"""A server in a process of its own, which tests may kill and start again at the same address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.waiting import until

COMMAND = str(Path(sys.executable).with_name("postbus"))


class HttpServer:
    """`postbus up`, over and over.

    Args:
        url: The Postgres behind it.
    """

    def __init__(self, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._database = url
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [COMMAND, "up", "--url", self._database, "--port", str(self._port), "--no-access-log"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean)
        until(self._is_ready, "the server is ready")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health").status_code == 200
        except httpx.TransportError:
            return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
