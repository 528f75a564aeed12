"""Errors of Spark, in a line."""

from __future__ import annotations

import pytest

from postbus.pipelines.runtime.failures import in_short


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "\n: org.apache.spark.SparkException: aborted\n\tat a.B\nCaused by: java.io.IOException: No space left\n\tat c.D",
            "Spark failed: IOException: No space left",
            None,
        ),
        (
            "[PYTHON_DATA_SOURCE_ERROR] Failed: postbus.model.errors.NotFound: the file is gone\nhint: verify it\n",
            "the file is gone",
            "verify it",
        ),
        (
            "Failed: Traceback (most recent call last):\n  File \"x\"\nModuleNotFoundError: No module named 'postbus'\n",
            "Spark failed: ModuleNotFoundError: No module named 'postbus'",
            None,
        ),
        (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no luck SQLSTATE: XXKST\n=== Query ===",
            "Spark failed: no luck",
            None,
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST",
            "Spark failed: a Python worker did not start in time",
            "Spark waits ten seconds: run it when the machine is less busy",
        ),
        ("something\nelse", "Spark failed: something else", None),
    ],
)
def test_an_error_of_spark_comes_down_to_its_last_cause(text: str, message: str, hint: str | None) -> None:
    found = in_short(RuntimeError(text))

    assert (found.message, found.hint) == (message, hint)
