"""The fixtures are there wherever Postbus is installed, and cost nothing where nobody uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import snippets

PLAIN = """
import sys

def test_nothing_is_imported_that_nobody_uses():
    assert not [name for name in sys.modules if name.startswith(("psycopg", "postbus.client", "postbus.db"))]
"""


def run(folder: Path, text: str) -> str:
    (folder / "test_user.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "POSTBUS_TEST_URL"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "test_user.py")]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_users_tests_have_the_fixtures_as_the_how_to_says(tmp_path: Path) -> None:
    (page,) = snippets("docs/how-to/test-your-code.md", "python")[:1]
    assert "2 passed" in run(tmp_path, page)


def test_tests_that_use_no_fixture_import_nothing(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, PLAIN)
