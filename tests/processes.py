"""Whether processes run."""

from __future__ import annotations

import os
from pathlib import Path

from tests.waiting import until


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text() if Path("/proc/self/stat").exists() else ""
    except (ProcessLookupError, FileNotFoundError):
        return False
    return not status.rpartition(")")[2].startswith(" Z")


def wait_until_gone(pid: int) -> None:
    until(lambda: not is_alive(pid), f"process {pid} ends")
