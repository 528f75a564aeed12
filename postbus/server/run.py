"""Serves the application until it is told to stop."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from postbus.model.errors import Conflict, InvalidInput
from postbus.server import logs
from postbus.server.asgi import AsgiApp
from postbus.server.protocol import Protocol
from postbus.server.settings import Settings
from postbus.server.state import AppState
from postbus.server.workers import Workers

# How long running requests have to end. Long polls end at once.
_GRACE_SECONDS = 10
_MOST_FILES = 1_000_000
_BACKLOG = 2048


class Server(uvicorn.Server):
    """Ends long polls when it is told to stop, so that it does not have to wait for them."""

    def __init__(self, config: uvicorn.Config, state: AppState) -> None:
        super().__init__(config)
        self.state = state

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.state.begin_stop()
        await super().shutdown(sockets)


def bind(settings: Settings) -> socket.socket:
    """The socket to listen on.

    Raises:
        Conflict: The port is taken.
        InvalidInput: The address is none of this machine's, or may not be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listening.close()
        if isinstance(error, PermissionError) or error.errno in (98, 48):
            raise Conflict(
                f"port {settings.port} of {settings.host} cannot be used: {error.strerror}",
                "choose another with --port; perhaps Postbus is running already",
            ) from error
        raise InvalidInput(
            f"cannot listen on {settings.host}: {error}", "choose another address with --host"
        ) from error
    listening.set_inheritable(True)
    # From now on, clients can connect.
    listening.listen(_BACKLOG)
    return listening


def address_of(settings: Settings, listening: socket.socket) -> str:
    """The URL at which the server can be reached."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = "localhost"
    return f"{settings.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def server(settings: Settings) -> Server:
    """A server that is ready to run."""
    state = AppState(settings)
    return Server(_config(settings, AsgiApp(state)), state)


def serve(settings: Settings, listening: socket.socket, *, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM."""
    _allow_many_connections()
    if settings.workers == 1:
        _serve(settings, listening, started)
        return
    with tempfile.TemporaryDirectory(prefix="postbus-") as folder:
        # The counters of all processes, and the lock of the one that sweeps and maintains.
        figures = Path(folder, "metrics")
        figures.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(figures)
        shared = replace(settings, services_lock=Path(folder, "services.lock"))
        started()
        Workers(settings.workers, _work, shared, listening).run()


def _allow_many_connections() -> None:
    """Raise the limit of open files to the maximum: each waiting client needs one, and the usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_FILES)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _work(settings: Settings, listening: socket.socket) -> None:
    """Run one of several processes. It does not outlive its parent."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_stop_with, args=(parent.sentinel,), daemon=True).start()
    _serve(settings, listening)


def _stop_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _serve(settings: Settings, listening: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    logs.take_over(as_text=settings.log_text)
    # Our own log line for a refused request says more.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    serving = server(settings)
    # What has been imported stays: without this, each full collection of garbage would look at all of it and answer nobody
    # for 45 ms.
    gc.collect()
    gc.freeze()

    def stop(*_: object) -> None:
        serving.should_exit = True

    # For signals that come before uvicorn listens to them. It raises them once more in the end, for these handlers: a stop
    # that was asked for is no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    started()
    serving.run(sockets=[listening])


def _config(settings: Settings, app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=partial(  # type: ignore[arg-type]
            Protocol,
            arrival_timeout=settings.arrival_timeout,
            rest_timeout=settings.rest_timeout,
            access_log=settings.access_log,
        ),
        ws="none",
        log_config=None,
        access_log=False,
        # Only the log contains the address of a client.
        proxy_headers=settings.access_log,
        server_header=False,
        date_header=True,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=None if settings.tls_certificate is None else str(settings.tls_certificate),
        ssl_keyfile=None if settings.tls_key is None else str(settings.tls_key),
    )
