"""The guide: its Python runs as it is printed, against a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.serving import serving

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "use-sqs-clients.md"


def test_the_first_program_prints_what_it_sent(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GUIDE.read_text()
    first, celery = re.findall(r"```python\n(.*?)```", text, re.S)
    exported = dict(re.findall(r"(AWS_\w+)=(\S+)", text))
    with serving(fresh_url) as api:
        for name, value in exported.items():
            monkeypatch.setenv(name, value.replace("http://localhost:7376", api.url))

        exec(first, {})

        assert capsys.readouterr().out == "hello\n"
        scope: dict[str, object] = {}
        exec(celery.replace("localhost:7376", api.url.removeprefix("http://")), scope)
        app = scope["app"]
        with app.connection_for_write() as connection:  # type: ignore[attr-defined]
            queue = connection.SimpleQueue("celery")
            queue.put("x")
            assert queue.get(timeout=5).payload == "x"
            queue.close()
