from __future__ import annotations

import subprocess
import sys

import postbus


def test_every_public_name_can_be_imported() -> None:
    for name in postbus.__all__:
        assert getattr(postbus, name) is not None


def test_importing_the_package_loads_no_driver() -> None:
    script = "import postbus, sys; print('psycopg' in sys.modules, 'typer' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.split() == ["False", "False"]
