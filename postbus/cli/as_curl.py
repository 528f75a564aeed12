"""`--as-curl`: prints the requests of a command as curl commands instead of sending them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from postbus.cli.global_options import current

if TYPE_CHECKING:
    from postbus import Bus
    from postbus.cli.target import Target
    from postbus.http._sync.client import HttpClient
    from postbus.http.request import Request

_Result = TypeVar("_Result")
_prepares: ContextVar[bool] = ContextVar("the request only prepares the command", default=False)
_wording: ContextVar[Callable[[Request], str] | None] = ContextVar("how a request is printed", default=None)
# Prints nothing if nothing was received: the server refuses an ack without ids.
_ACK_IDS: Final = "jq -c 'select(.data | length > 0) | {ack_ids: [.data[].ack_id]}'"


class Shown(BaseException):
    """A request was printed instead of sent, so there is no answer to continue with."""


@contextmanager
def showing(target: Target) -> Iterator[Bus]:
    """A bus that prints its first request. Later requests are left out."""
    from postbus.client._sync.bus import Bus
    from postbus.transport._sync.http import HttpTransport

    with client(target) as found, ending():
        yield Bus(HttpTransport(found))


@contextmanager
def client(target: Target) -> Iterator[HttpClient]:
    """A client of a server; with --as-curl it prints requests."""
    from postbus.http._sync.client import HttpClient

    found = HttpClient(target.url or "", token=target.token, on_request=_show if current().as_curl else None)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def ending() -> Iterator[None]:
    """End the command once its request is printed."""
    try:
        yield
    except Shown:
        raise typer.Exit from None


@contextmanager
def preparing() -> Iterator[None]:
    """Requests in this block prepare the command: --as-curl sends them instead of printing them."""
    token = _prepares.set(True)
    try:
        yield
    finally:
        _prepares.reset(token)


def all_of(*questions: Callable[[], Any]) -> list[Any]:
    """The results of several calls; with --as-curl the requests of all of them."""
    answers = []
    for question in questions:
        try:
            answers.append(question())
        except Shown:
            continue
    if len(answers) < len(questions):
        raise Shown
    return answers


def show_receive_and_ack(receive: Callable[[], Any], ack: Callable[[], Any]) -> None:
    """Print receive and ack as a script for a shell with jq."""
    _show_as(_receiving, receive)
    _show_as(_acking, ack)
    raise Shown


def _receiving(request: Request) -> str:
    return f"""received=$({request.as_curl()} -sS); printf '%s\\n' "$received\""""


def _acking(request: Request) -> str:
    sent = request.as_curl(body='"$ack_ids"')
    return f"""for ack_ids in $(printf '%s' "$received" | {_ACK_IDS}); do {sent}; done"""


def _show_as(wording: Callable[[Request], str], ask: Callable[[], Any]) -> None:
    token = _wording.set(wording)
    try:
        ask()
    except Shown:
        return
    finally:
        _wording.reset(token)


def _show(request: Request) -> None:
    if _prepares.get():
        return
    wording = _wording.get()
    typer.echo(request.as_curl() if wording is None else wording(request))
    raise Shown
