"""One adapter per system. To add one: a file here that offers the roles of base.py, and its name in the workloads."""

from __future__ import annotations

from benchmarks.systems.pgmq import BinaryPgmq, Pgmq
from benchmarks.systems.postbus import Postbus, PostbusByKey, PostbusCalls, PostbusSingleAcks
from benchmarks.systems.raw import RawCopy, RawInsert, RawSelect, RawTable

__all__ = [
    "BinaryPgmq",
    "Pgmq",
    "Postbus",
    "PostbusByKey",
    "PostbusCalls",
    "PostbusSingleAcks",
    "RawCopy",
    "RawInsert",
    "RawSelect",
    "RawTable",
]
