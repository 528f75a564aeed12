from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a developer has stored or set must not decide which bus a test works on."""
    for name in ("POSTBUS_URL", "POSTBUS_CONTEXT", "POSTBUS_DATA_DIR", "POSTBUS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POSTBUS_CONTEXTS", str(tmp_path / "settings" / "contexts.json"))


@pytest.fixture
def shell(fresh_url: str) -> Shell:
    return Shell(fresh_url)
