"""What libraries log in a server is a line of JSON, like everything else that it says."""

from __future__ import annotations

import json
import logging

import pytest

from postbus.server import logs


def test_a_record_becomes_a_line_of_json_with_its_trace(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    logger = logging.Logger("psycopg.pool")
    logger.addHandler(logs.Handler())
    try:
        int("two\nlines")
    except ValueError:
        logger.exception("lost %s", "it")

    (line,) = capfdbinary.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"], said["logger"], said["message"]) == (
        "log",
        "error",
        "psycopg.pool",
        "lost it",
    )
    assert "ValueError: invalid literal" in said["trace"]
