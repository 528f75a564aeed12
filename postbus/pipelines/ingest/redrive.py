"""Rows that went aside and fit by now are published, each once.

The writer of a redrive has a ledger, in which the number of a batch is the seq of the side stream up to which rows were tried.
Rows that still do not fit go aside again, with their new reason, so the next redrive finds them above that seq.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from postbus.db import session
from postbus.model.errors import NotFound
from postbus.pipelines.runtime.run import Run
from postbus.pipelines.runtime.statements import SPARK_WRITTEN
from postbus.spark.slices import state_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "reason STRING, pipeline STRING, file STRING, row STRING"


def as_aside(messages: DataFrame, pipeline: str) -> DataFrame:
    """The messages of the side stream for rows that cannot be published."""
    row = F.struct(F.col("problem").alias("reason"), F.lit(pipeline).alias("pipeline"), "file", "row")
    return messages.where("problem is not null").select(F.to_json(row).alias("data"))


class Redrive:
    """The redrive of one pipeline.

    Args:
        run: The run.
        stream: The stream to publish to.
        aside: The side stream.
        writer: The name of the ledger.
    """

    def __init__(self, run: Run, stream: str, aside: str, writer: str) -> None:
        self._run = run
        self._stream = stream
        self._aside = aside
        self._writer = writer

    def run(self, spark: SparkSession, as_messages: Callable[[DataFrame], DataFrame]) -> int:
        """Publish what fits by now; how many rows.

        Args:
            spark: The Spark that does it.
            as_messages: Makes messages of rows, or says what is wrong with them.
        """
        try:
            with session.transaction(self._run.url) as database:
                end = state_of(database, self._aside).horizon
        except NotFound:
            # Nothing ever went aside.
            return 0
        published, tried = self._position(self._stream), self._position(self._aside)
        if tried < published:
            # A former run ended between the two.
            self._put_aside_again(as_messages(self._rows(spark, tried, published)), published)
        if published >= end:
            return 0
        messages = as_messages(self._rows(spark, published, end))
        self._write(messages.where("problem is null").select("key", "data", "headers"), self._stream, end)
        count = self._written(self._stream)[1]
        self._put_aside_again(messages, end)
        self._run.note(count, None, aside=-count)
        return count

    def _rows(self, spark: SparkSession, after: int, to: int) -> DataFrame:
        """The rows of this pipeline in a part of the side stream."""
        options = {
            "url": self._run.url,
            "stream": self._aside,
            "startingPosition": str(after + 1),
            "endingPosition": str(to),
            "dataSchema": _SCHEMA,
            # What was purged is gone; the rest can still be published.
            "failOnDataLoss": "false",
        }
        frame = spark.read.format("postbus").options(**options).load().select("seq", "data.*")
        return frame.where(F.col("pipeline") == self._run.name).sort("seq").select("file", "row")

    def _put_aside_again(self, messages: DataFrame, to: int) -> None:
        self._write(as_aside(messages, self._run.name), self._aside, to)

    def _write(self, frame: DataFrame, stream: str, batch: int) -> None:
        options = {"url": self._run.url, "stream": stream, "writerId": self._writer, "batchId": str(batch)}
        frame.write.format("postbus").options(**options).mode("append").save()

    def _position(self, stream: str) -> int:
        return self._written(stream)[0]

    def _written(self, stream: str) -> tuple[int, int]:
        with session.transaction(self._run.url) as database:
            rows = database.rows(SPARK_WRITTEN, (stream, self._writer))
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)
