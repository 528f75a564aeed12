"""A proxy before a Postgres that cuts connections at the two moments which matter, and hangs or delays all of them."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

Moment = Literal["before the request arrives", "before the answer arrives"]


class Proxy:
    """Passes bytes on, until it is told otherwise.

    Args:
        url: The database, over a unix socket.
    """

    def __init__(self, url: str) -> None:
        settings = conninfo_to_dict(url)
        self._server = f"{settings['host']}/.s.PGSQL.{settings['port']}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{quote(str(settings['user']))}@127.0.0.1:{port}/{settings['dbname']}"
        self._cut: Moment | None = None
        self._flows = threading.Event()
        self._flows.set()
        self._delay = 0.0
        self._ends: list[socket.socket] = []

    def cut(self, moment: Moment) -> None:
        """Cut the next connection that is used, at that moment."""
        self._cut = moment

    def cut_all(self) -> None:
        """Cut all connections there are. What was held back by `hang` never arrives."""
        ends, self._ends = self._ends, []
        for end in ends:
            _shut(end)

    def hang(self) -> None:
        """Hold everything back until `resume`."""
        self._flows.clear()

    def resume(self) -> None:
        self._flows.set()

    def delay(self, seconds: float) -> None:
        """Pass everything on that much later."""
        self._delay = seconds

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing alone does not wake the thread that waits for clients.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.resume()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:
                    # It is down for a moment.
                    client.close()
                    server.close()
                    continue
                self._ends += client, server
                for ends in (
                    (client, server, "before the request arrives"),
                    (server, client, "before the answer arrives"),
                ):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, moment: Moment) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._cut == moment:
                    self._cut = None
                    break
                time.sleep(self._delay)
                self._flows.wait()
                target.sendall(data)
        for end in (source, target):
            _shut(end)
            end.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
