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


def test_lines_for_people_are_short_and_show_what_a_client_sent_harmlessly(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    logs.take_over(as_text=True)
    try:
        logs.request(
            request_id="1",
            method="GET",
            path="/api/\x1b[31m\nstreams",
            status=404,
            started=0,
            client="::1",
            response_bytes=2,
        )
        logs.note("maintenance is delayed", reason="Postgres is away")
        logs.Handler().emit(logging.LogRecord("psycopg.pool", logging.WARNING, "", 1, "lost %s", ("it",), None))
    finally:
        logs.take_over()
    request, note, warning = capfdbinary.readouterr().err.decode().splitlines()
    assert "GET /api/\\x1b[31m\\nstreams  404" in request
    assert request.endswith(" ms")
    assert note.endswith("maintenance is delayed  reason=Postgres is away")
    assert warning.endswith("warning  psycopg.pool: lost it")
