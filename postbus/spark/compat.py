"""The one place for what differs between versions of Spark, or is not said in its documentation."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, Filter
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

# Spark marks the jobs of a streaming query with these, and tasks in Python see them. A stream writer is told only the
# batch id, and only on commit.
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_UNKNOWN_PARALLELISM: Final = 64


def arrow_schema(schema: StructType) -> Any:
    """The schema that record batches for Spark must have."""
    return to_arrow_schema(schema, timezone="UTC")


@cache
def freeze_imports() -> None:
    """Keep imported modules out of garbage collection, which Spark runs after each task.

    Going through all modules takes 50 ms.
    """
    gc.freeze()


def parallelism(spark: Any) -> int:
    """How many tasks run side by side. Spark Connect does not tell: then as many as a small cluster has cores."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return _UNKNOWN_PARALLELISM


def task_query() -> tuple[str | None, int | None]:
    """The streaming query and the batch that this task works for; None for a batch job."""
    context = TaskContext.get()
    if context is None:
        return None, None
    batch = context.getLocalProperty(_BATCH_ID)
    return context.getLocalProperty(_QUERY_ID), None if batch is None else int(batch)


def task_partition() -> int:
    """The place of this task among those of its stage."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@contextmanager
def active(spark: Any) -> Iterator[None]:
    """Make a session the one that this thread works with: Spark looks there, and not in the session that is asked to
    register a data source, whether it has one of that name already.
    """
    of_java = getattr(spark, "_jsparkSession", None)
    if of_java is None:
        # Spark Connect has no such thing.
        yield
        return
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(of_java)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class OptionalPushdown:
    """`pushFilters` of a reader that also works where filter pushdown is off, which is Spark's default.

    Spark refuses a reader that has a `pushFilters` of its own while spark.sql.python.filterPushdown.enabled is off,
    instead of not calling it; it compares `__func__`. A reader cannot ask for the setting: it lives in another process.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._push = push

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._push(filters)
