"""Lines on stderr, of JSON or, on a terminal, of plain text: one for each request, and what else is worth saying."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_Fields = dict[str, Any]


def _as_json(fields: _Fields) -> bytes:
    return _encode({"time": datetime.now(UTC), **fields}) + b"\n"


def _as_text(fields: _Fields) -> bytes:
    """A line for people: the time, what happened, and the rest as name=value."""
    rest = dict(fields)
    event, trace = rest.pop("event"), rest.pop("trace", "")
    if event == "request":
        what = f"{rest['method']} {rest['path']}  {rest['status']}  {rest['duration_ms']:.1f} ms"
    elif event == "log":
        what = f"{rest['level']}  {rest['logger']}: {rest['message']}"
    else:
        what = "  ".join([event, *(f"{name}={value}" for name, value in rest.items())])
    # A path is what a client has sent.
    what = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in what)
    return f"{datetime.now():%H:%M:%S}  {what}\n{trace}".encode(errors="backslashreplace")  # noqa: DTZ005


_form: Callable[[_Fields], bytes] = _as_json


def write(**fields: Any) -> None:
    line = _form(fields)
    # One write, so that the lines of several processes do not mix.
    try:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
    except (AttributeError, OSError, ValueError):
        # stderr was replaced, closed or is full: a request is not refused for that.
        return


def note(event: str, **fields: Any) -> None:
    write(event=event, **fields)


def failure(request_id: str, error: BaseException) -> None:
    """What went wrong within: the trace is for the log, never for the answer."""
    trace = "".join(traceback.format_exception(error))
    write(event="internal error", request_id=request_id, error=repr(error), trace=trace)


def request(
    *, request_id: str, method: str, path: str, status: int, started: float, client: str, response_bytes: int
) -> None:
    write(
        event="request",
        request_id=request_id,
        method=method,
        path=path,
        status=status,
        duration_ms=round((time.perf_counter() - started) * 1000, 3),
        client=client,
        response_bytes=response_bytes,
    )


class Handler(logging.Handler):
    """What libraries have to say, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        trace = {} if record.exc_info is None else {"trace": "".join(traceback.format_exception(*record.exc_info))}
        write(event="log", level=record.levelname.lower(), logger=record.name, message=record.getMessage(), **trace)


def take_over(*, as_text: bool = False) -> None:
    """Write in this form from now on, also warnings of libraries, unless somebody has said where they are to go."""
    global _form
    _form = _as_text if as_text else _as_json
    logging.basicConfig(handlers=[Handler()], level=logging.WARNING)
