"""Lines of JSON on stderr: one for each request, and what else is worth saying."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def write(**fields: Any) -> None:
    line = _encode({"time": datetime.now(UTC), **fields}) + b"\n"
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
    """What libraries have to say, in lines of JSON too."""

    def emit(self, record: logging.LogRecord) -> None:
        trace = {} if record.exc_info is None else {"trace": "".join(traceback.format_exception(*record.exc_info))}
        write(event="log", level=record.levelname.lower(), logger=record.name, message=record.getMessage(), **trace)


def take_over() -> None:
    """Write warnings of libraries as lines of JSON too, unless somebody has said where they are to go."""
    logging.basicConfig(handlers=[Handler()], level=logging.WARNING)
