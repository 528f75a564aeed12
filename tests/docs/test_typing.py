"""README's Python passes mypy --strict, as a user's program would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import ROOT, snippets


def test_the_readme_passes_mypy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("\n".join(snippets("README.md", "python")))

    # Only the program is looked at; what it imports is known from the cache of `make lint`, if that has run.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", str(program)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout
