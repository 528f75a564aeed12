"""Writes docs/reference/errors.md: every error with its four faces."""

from __future__ import annotations

from typing import Final

from postbus.model.errors import Error, all_errors
from tools.docstrings import as_markdown

_HEAD: Final = """# Errors

Made from `postbus/model/errors.py` by `make generate`; do not edit.

An error is the same on every surface: a class in Python, an SQLSTATE, an HTTP status, an exit status of the command line. It says
in one line what happened, and in another, the hint, what to do. In Python all derive from `postbus.Error`, with `message` and
`hint`; over HTTP the body is `{"summary": …, "hint": …}`.

| in Python | SQLSTATE | HTTP | exit | meaning |
|---|---|---|---|---|
"""


_AFTER: Final = """
`ConnectionLost` is also an `Unavailable`: a program that waits and tries again can catch that one. Only `ConnectionLost` leaves
open whether the call took effect; publish again with a `dedup_id`, or look.

Not finding work is no error: `receive` returns an empty batch, and `ack` returns how many deliveries it finished.
"""


def reference() -> str:
    """The page."""
    return _HEAD + "".join(map(_row, all_errors())) + _AFTER


def _row(error: type[Error]) -> str:
    meaning = as_markdown(error).partition("\n")[0]
    return f"| `{error.__name__}` | {error.sqlstate} | {error.http_status} | {error.exit_status} | {meaning} |\n"
