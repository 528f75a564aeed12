"""The HTTP server that is measured, in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from postbus.server import run
from postbus.server.settings import Settings

_START_SECONDS: Final = 30.0
_context: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that runs."""

    host: str
    port: int
    process_id: int

    def megabytes(self) -> float:
        """The memory that its process has, from /proc."""
        (line,) = (
            line
            for line in Path(f"/proc/{self.process_id}/status").read_text().splitlines()
            if line.startswith("VmRSS:")
        )
        return int(line.split()[1]) / 1024


@contextmanager
def serving(url: str, *, coalesce: bool = True) -> Iterator[HttpServer]:
    """A server on any free port, with one process and no access log."""
    answer, outbox = _context.Pipe(duplex=False)
    process = _context.Process(target=_serve, args=(url, coalesce, outbox), daemon=True)
    process.start()
    outbox.close()
    try:
        if not answer.poll(_START_SECONDS):
            raise RuntimeError("the server did not start")
        host, port = answer.recv()
        yield HttpServer(host, port, process.pid or 0)
    finally:
        process.terminate()
        process.join()


def _serve(url: str, coalesce: bool, outbox: Connection) -> None:
    settings = Settings(url=url, port=0, access_log=False, coalesce=coalesce)
    listening = run.bind(settings)
    # Connections are taken from here on; who comes too early waits.
    listening.listen(1024)
    outbox.send(listening.getsockname()[:2])
    run.serve(settings, listening)
