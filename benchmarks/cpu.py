"""The CPU time of a Postgres server on this machine, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg


@dataclass(frozen=True, slots=True)
class ServerClock:
    """Reads what a server and all its processes, also those that have ended, have used so far."""

    postmaster: int

    @classmethod
    def of(cls, url: str) -> Self | None:
        """The clock of this server; None if it is on another machine, or this one has no /proc."""
        with psycopg.connect(url) as connection:
            row = connection.execute("select pg_backend_pid(), inet_server_addr() is null").fetchone()
            backend, is_local = row or (0, False)
            fields = _fields(backend) if is_local else None
        return None if fields is None else cls(int(fields[1]))

    def seconds(self) -> float:
        own = _fields(self.postmaster)
        if own is None:
            raise RuntimeError("the server has ended")
        children = [fields for fields in map(_fields, _process_ids()) if fields and int(fields[1]) == self.postmaster]
        # The postmaster's third and fourth are those of its children that have ended.
        ticks = sum(map(int, own[11:15])) + sum(int(tick) for fields in children for tick in fields[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")


def _process_ids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _fields(process_id: int) -> list[str] | None:
    """What /proc/…/stat says after the command's name, from the state on; None when there is no such process."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()
