"""A way to a Postgres that can be shut: then connections are refused, and those there are break."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict


class Gate:
    """Passes bytes between a TCP port and a Postgres on a unix socket, while it is open. It begins shut."""

    def __init__(self, url: str) -> None:
        settings = conninfo_to_dict(url)
        self._server = f"{settings['host']}/.s.PGSQL.{settings['port']}"
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.url = f"postgresql://{quote(str(settings['user']))}@127.0.0.1:{self._port}/{settings['dbname']}"
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        if self._listener is not None:
            _shut(self._listener)
            self._listener = None
        ends, self._ends = self._ends, []
        for end in ends:
            _shut(end)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._ends += client, server
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass, args=(source, target), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(65536):
            target.sendall(received)
    _shut(source)
    _shut(target)


def _shut(end: socket.socket) -> None:
    # Closing alone does not wake a thread that waits.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
