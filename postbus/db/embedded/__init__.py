"""A Postgres of our own, started on first use and shared by every process that names the same data directory.

A user process holds a shared lock on a file while it lives. A supervisor process, which outlives whoever started it, runs the
server and stops it when nobody holds that lock any more: the kernel drops a lock with its process, however that ended.
"""

from postbus.db.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
