"""The facts without which a figure means nothing: machine, versions, settings."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psycopg

_SETTINGS: Final = [
    "autovacuum",
    "checkpoint_timeout",
    "data_checksums",
    "fsync",
    "full_page_writes",
    "jit",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
]
_PACKAGES: Final = ("orjson", "pgmq", "postbus", "psycopg", "psycopg-binary")


def facts(server_url: str) -> dict[str, Any]:
    """What to store beside results. Not the URL: it may hold a password."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "processor": _processor(),
        # Anything but a small number means that something else ran: do not trust the figures.
        "load_average_before": os.getloadavg(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "commit": _commit(),
        **_postgres(server_url),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _commit() -> str | None:
    """The commit that was measured, with "-dirty" when files differ from it; None outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _postgres(server_url: str) -> dict[str, Any]:
    statement = "select s.name, current_setting(s.name) from pg_settings as s where s.name = any (%s) order by s.name"
    with psycopg.connect(server_url) as connection:
        settings = connection.execute(statement, (_SETTINGS,)).fetchall()
        row = connection.execute("select version()").fetchone()
    return {"postgres": row[0] if row else None, "postgres_settings": dict(settings)}
