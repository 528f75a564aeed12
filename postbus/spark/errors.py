"""Errors as a Spark user sees them: the sentence and the hint, without the stack trace of a worker process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from postbus.model.errors import Error

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def without_traceback(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Raise errors of Postbus from Spark's worker processes without their traceback."""

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except Error as error:
            hide_traceback()
            raise error from None

    return run


def hide_traceback() -> None:
    """Ask PySpark's worker to report the exception with which it ends in one line."""
    if os.environ.get("SPARK_PYTHON_RUNTIME") == "PYTHON_WORKER":
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
