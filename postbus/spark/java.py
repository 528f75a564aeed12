"""Where Java is: Spark needs 17 or later, and its own message when there is none helps nobody."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from postbus.model.errors import Unavailable

OLDEST: Final = 17
_USUAL_PLACES: Final = (
    "/usr/lib/jvm",
    "/usr/java",
    "/opt/java",
    "/Library/Java/JavaVirtualMachines",
    "/opt/homebrew/opt",
)
_HINT: Final = (
    "install one, on Debian and Ubuntu: apt-get install default-jre-headless; on macOS: brew install openjdk@17; "
    "or let JAVA_HOME name it"
)


def find_java(environment: Mapping[str, str] | None = None, places: tuple[str, ...] = _USUAL_PLACES) -> Path:
    """The home of a Java that Spark runs on: that of JAVA_HOME, else of PATH, else in the usual places.

    Raises:
        Unavailable: There is none, or none is new enough. The hint says what to install.
    """
    known = os.environ if environment is None else environment
    too_old: list[str] = []
    for home in _candidates(known, places):
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
        if version is not None:
            too_old.append(f"Java {version} in {home}")
    if too_old:
        raise Unavailable(f"Spark needs Java {OLDEST} or later, and there is {', '.join(too_old)}", _HINT)
    raise Unavailable(f"Spark needs Java {OLDEST} or later, and there is none", _HINT)


def java_version(home: Path) -> int | None:
    """The major version of the Java in a folder; None when there is none that runs."""
    program = home / "bin" / "java"
    if not program.exists():
        return None
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else None


def _candidates(environment: Mapping[str, str], places: tuple[str, ...]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    if program := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(program).resolve().parent.parent
    for place in places:
        for home in sorted(Path(place).glob("*"), reverse=True):
            yield home
            yield home / "Contents" / "Home"
