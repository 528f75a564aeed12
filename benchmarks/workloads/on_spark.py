"""What all workloads on Spark begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import server
from benchmarks.systems import Postbus
from benchmarks.systems.spark import session
from benchmarks.workloads.base import Bench


@contextmanager
def spark_and_database(
    bench: Bench, *, jdbc: bool = False, settings: dict[str, str] | None = None
) -> Iterator[tuple[Any, str]]:
    """A session, and the URL of a new database with Postbus in it, over TCP."""
    with (
        session(jdbc=jdbc, settings=settings) as spark,
        server.over_tcp(bench.server_url) as server_url,
        server.database(server_url, Postbus()) as url,
    ):
        yield spark, url
