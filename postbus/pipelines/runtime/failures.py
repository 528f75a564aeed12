"""Errors of Spark in a few words: what a user can do something about, without a wall of Java."""

from __future__ import annotations

import re
from typing import Final

from postbus.model.errors import Error, Unavailable

_OURS: Final = re.compile(r"postbus\.(?:model\.errors|db\.arrow)\.\w+: (.+?)(?:\nhint: (.+?))?(?:\n|$)")
_CAUSE: Final = re.compile(r"^(?:Caused by: |: )([\w.$]+(?:Exception|Error)): (.+)$", re.M)
_OF_PYTHON: Final = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception)): (.+)$", re.M)
_OF_QUERY: Final = re.compile(r"\[STREAM_FAILED\] .*?terminated with exception: (.+?)(?: SQLSTATE:|\n|$)")
_MOST: Final = 500
_LATE: Final = "Python worker failed to connect back"


def is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def in_short(error: BaseException) -> Error:
    """What an error of Spark comes down to: one of ours that a task raised, else its last cause."""
    text = str(error)
    if ours := _OURS.search(text):
        return Unavailable(ours[1][:_MOST], ours[2])
    if _LATE in text:
        return Unavailable(
            "Spark failed: a Python worker did not start in time",
            "Spark waits ten seconds: run it when the machine is less busy",
        )
    causes = _CAUSE.findall(text) or (_OF_PYTHON.findall(text) if "Traceback (most recent" in text else [])
    if causes:
        kind, message = causes[-1]
        return Unavailable(f"Spark failed: {kind.rpartition('.')[2]}: {message}"[:_MOST])
    if query := _OF_QUERY.search(text):
        text = query[1]
    return Unavailable(f"Spark failed: {' '.join(text.split())}"[:_MOST])
