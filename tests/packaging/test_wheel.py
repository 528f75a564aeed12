"""The wheel in an environment of its own, with nothing but what Postbus itself requires. Downloads what it installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import postbus

pytestmark = [pytest.mark.slow, pytest.mark.newest_server]

ROOT = Path(__file__).parents[2]
SOURCES = ("postbus", "pyspark_postbus", "pyproject.toml", "README.md", "LICENSE")
PROGRAM = """
import sys
import postbus

with postbus.connect(sys.argv[1]) as bus:
    bus.create_stream(sys.argv[2])
    consumer = bus.create_consumer(sys.argv[2], "billing")
    bus.publish(sys.argv[2], key="orders.1", data={"quantity": 4})
    (delivery,) = consumer.receive()
    print(delivery.data, postbus.__version__)
"""


def run(*command: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("POSTBUS_", "PYTHONPATH"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, cwd="/")
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel without extras."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    run(sys.executable, "-m", "venv", folder / "environment")
    programs = folder / "environment" / "bin"
    run(programs / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", folder)
    (wheel,) = (folder / "dist").glob("postbus-*.whl")
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
    return programs


def test_a_bare_install_publishes_and_receives(programs: Path, url: str, name: str) -> None:
    said = run(programs / "python", "-c", PROGRAM, url, name).stdout

    assert said == f"{{'quantity': 4}} {postbus.__version__}\n"


def test_the_wheel_has_the_version_of_the_package(programs: Path) -> None:
    said = run(programs / "python", "-c", "from importlib.metadata import version; print(version('postbus'))").stdout

    assert said == f"{postbus.__version__}\n"


def test_the_command_of_a_bare_install_says_how_to_install_it(programs: Path) -> None:
    said = run(programs / "postbus", "--help", status=1).stderr

    assert said == "error: the postbus command is not installed; run: pip install 'postbus[cli]'\n"


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("import postbus; postbus.connect('http://127.0.0.1:1')", "http"),
        ("from postbus.spark import session", "spark"),
        ("from postbus.db.embedded import binaries; binaries.find()", "embedded"),
    ],
)
def test_a_part_that_a_bare_install_lacks_names_its_extra(programs: Path, program: str, extra: str) -> None:
    said = run(programs / "python", "-c", program, status=1).stderr

    assert f"pip install 'postbus[{extra}]'" in said
