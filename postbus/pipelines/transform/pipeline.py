"""transform: streams to a stream by Spark SQL or a function of DataFrames, each message once in the result.

A streaming query reads the inputs and publishes each of its batches in one transaction with a note of the batch. Killed between
that and Spark's own note in the checkpoint, the batch is run again, and is not published again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.model.errors import InvalidInput
from postbus.pipelines.runtime import checkpoints, messages, spark_session
from postbus.pipelines.runtime.limits import parse_limit
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.queries import Follower, Ledger
from postbus.pipelines.runtime.run import Run, running
from postbus.pipelines.runtime.user_functions import check_name, load_function
from postbus.spark.options import position_of
from postbus.spark.slices import state_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_MODES: Final = ("append", "update")
_WATERMARK: Final = re.compile(r"(?:(?P<stream>[\w-]+):\s*)?(?P<column>[\w.]+)\s+(?P<delay>\d.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOptions:
    """What to transform, how, and where to.

    Attributes:
        stream: The stream to read.
        into: The stream to publish to.
        also: Further streams to read.
        sql: A query of Spark SQL, in which the streams are tables by their names.
        function: Or a function that is given the streams as DataFrames and returns one: package.module:name, or file.py:name.
        data_schema: `quantity INT, price DOUBLE`: the data of all inputs is then a struct.
        bad_into: Publish messages that do not fit data_schema to this stream, as they are.
        keep_bad: Let the query see them, with null as data and the text in `_corrupt`. Without either they fail the pipeline.
        watermark: How late messages may be: `published_at 10 minutes`, or `orders: data.at 1 hour` for one input. A field of data
            becomes a column by its own name, which the query has to use: `window(at, '5 minutes')`.
        output_mode: append, or update: then a result that has changed is published again.
        start: Where a pipeline begins that has not run before: earliest, latest, a seq or a time.
        key_pattern: Only messages whose key matches.
        batch: How many messages of each input one transaction takes at most.
        every: In continuous mode, how many seconds lie between two batches at least.
        checkpoint: The folder in which Spark keeps how far it is, and the state of windows and joins. Later runs know it.
        consumer: By this name the inputs show how far the pipeline is.
        name: The pipeline's name, where there are several between the same streams.
        allow_loss: Go on when messages were purged before they were read.
        again: Begin anew: everything is published once more.
        max_bad: Fail once more messages than this are aside: a number, or a share such as 1%.
    """

    stream: str
    into: str
    also: tuple[str, ...] = ()
    sql: str | None = None
    function: str | None = None
    data_schema: str | None = None
    bad_into: str | None = None
    keep_bad: bool = False
    watermark: tuple[str, ...] = ()
    output_mode: str = "append"
    start: str = "earliest"
    key_pattern: str | None = None
    batch: int = 1_000_000
    every: float = 1.0
    checkpoint: str | None = None
    consumer: str | None = None
    name: str | None = None
    allow_loss: bool = False
    again: bool = False
    max_bad: str | None = None

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if (self.sql is None) == (self.function is None):
            raise InvalidInput(
                "a transform is a query, a function or a pipeline", "give one of --sql, --function and --pipeline"
            )
        if len(set(self.inputs)) < len(self.inputs):
            raise InvalidInput("a stream is named twice")
        if self.into in self.inputs or self.bad_into in self.inputs:
            raise InvalidInput(
                "a stream cannot be transformed into itself: it would never end", "publish to another stream"
            )
        if self.data_schema is None and (self.bad_into is not None or self.keep_bad):
            raise InvalidInput("without a schema every message fits", "add --data-schema 'quantity INT, …'")
        if self.keep_bad and self.bad_into is not None:
            raise InvalidInput("--bad-into and --keep-bad exclude each other")
        if self.output_mode not in _MODES:
            raise InvalidInput(f'"{self.output_mode}" is not an output mode', f"there are: {', '.join(_MODES)}")
        if self.batch < 1 or self.every < 0:
            raise InvalidInput("batch has to be above 0, and every not below")
        position_of(self.start, "--from")
        parse_limit(self.max_bad)
        if self.max_bad is not None and self.bad_into is None:
            raise InvalidInput("--max-bad counts messages that are put aside", "add --bad-into STREAM")
        if self.function is not None:
            check_name(self.function)
        for each in self.watermark:
            _watermark(each, self.inputs)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that are read."""
        return (self.stream, *self.also)

    @property
    def refuses_bad(self) -> bool:
        """Whether a message that does not fit the schema fails the pipeline."""
        return self.data_schema is not None and self.bad_into is None and not self.keep_bad

    @property
    def reader(self) -> str:
        """The consumer that shows how far the pipeline is."""
        return self.consumer or f"transform-{self.into}"[:63]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """What a run has done.

    Attributes:
        read: How many messages were read.
        published: How many messages were published.
        aside: How many did not fit the schema, and are in the other stream.
        late: How many rows a watermark dropped because they came too late. A query that groups counts them by group.
        filtered: How many the query left out: read = published + aside + late + filtered. None where results are not rows
            of the input: with groups, windows, joins, or several messages made of one.
    """

    read: int
    published: int
    aside: int
    late: int
    filtered: int | None


def transform_streams(
    url: str, options: TransformOptions, *, spark: SparkSession, continuous: bool = False, show: Show | None = None
) -> Transformed:
    """Transform what is there now, or from now on until a signal comes.

    Args:
        url: The database.
        options: What, how, and where to.
        spark: The Spark that does it.
        continuous: Go on with what is published, until SIGINT or SIGTERM.
        show: Who shows the progress.

    Raises:
        InvalidInput: The options do not go together, or Spark refuses the query.
        NotFound: A stream does not exist.
        Conflict: The checkpoint is gone, or more messages are aside than max_bad allows.
    """
    options.check()
    change = _change(options)
    own = spark_session.of_its_own(spark)
    name = options.name or f"transform {'+'.join(options.inputs)} into {options.into}"
    with running(url, name, "transform", options.stream, options, consumer=options.reader, show=show) as run:
        with session.transaction(url) as database:
            data_type = state_of(database, options.into).data_type
        run.allow_aside(options.max_bad, options.bad_into or "", is_done=True)
        known = checkpoints.planned(run, own, options.checkpoint, again=options.again)
        ledgers = {"query": Ledger(options.into, known.writer)}
        if options.bad_into is not None:
            ledgers["bad"] = Ledger(options.bad_into, f"{known.writer}-bad")
        follower = Follower(run, options.inputs, options.reader, ledgers)
        follower.follow(_started(run, own, options, known, change, data_type, continuous))
        return _summary(run, follower)


def _summary(run: Run, follower: Follower) -> Transformed:
    published = follower.published("query")
    filtered = run.done - follower.repeated - published - run.aside - run.late
    return Transformed(
        read=run.done,
        published=published,
        aside=run.aside,
        late=run.late,
        filtered=None if follower.has_state or filtered < 0 else filtered,
    )


_Change = Callable[["SparkSession", "dict[str, DataFrame]"], "DataFrame"]


def _change(options: TransformOptions) -> _Change:
    """What makes one DataFrame of those of the inputs."""
    if options.function is not None:
        function = load_function(options.function)
        return lambda spark, frames: function(*frames.values())

    def run_sql(spark: SparkSession, frames: dict[str, DataFrame]) -> DataFrame:
        for stream, frame in frames.items():
            frame.createOrReplaceTempView(f"`{stream}`")
        return spark.sql(options.sql or "")

    return run_sql


def _started(
    run: Run,
    spark: SparkSession,
    options: TransformOptions,
    known: checkpoints.Checkpoint,
    change: _Change,
    data_type: str,
    continuous: bool,
) -> list[StreamingQuery]:
    """The query, and the one that puts bad messages aside."""
    from pyspark.errors import AnalysisException

    frames = {stream: _read(run.url, spark, options, stream) for stream in options.inputs}
    prepared = {stream: _prepared(frame, options, stream) for stream, frame in frames.items()}
    try:
        result = messages.as_messages(_checked(change(spark, prepared)), data_type)
        writers = {"query": _writer(run.url, result, options.into, known.writer, options.output_mode)}
        if options.bad_into is not None:
            aside = [messages.only_bad(frame, stream) for stream, frame in frames.items()]
            bad = aside[0]
            for other in aside[1:]:
                bad = bad.union(other)
            writers["bad"] = _writer(run.url, bad, options.bad_into, f"{known.writer}-bad", "append")
        trigger: dict[str, Any] = (
            {"processingTime": f"{options.every} seconds"} if continuous else {"availableNow": True}
        )
        started = {
            name: writer.option("checkpointLocation", known.of(name)).trigger(**trigger).start()
            for name, writer in writers.items()
        }
    except AnalysisException as error:
        raise _refused(error, options) from error
    checkpoints.begun(run, known, {name: str(query.id) for name, query in started.items()})
    return list(started.values())


def _read(url: str, spark: SparkSession, options: TransformOptions, stream: str) -> DataFrame:
    wanted = {
        "startingPosition": options.start,
        "maxMessagesPerTrigger": str(options.batch),
        "failOnDataLoss": str(not options.allow_loss).lower(),
        "consumer": options.reader,
        "keyPattern": options.key_pattern,
        "dataSchema": options.data_schema,
        "failOnBadData": "true" if options.refuses_bad else None,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return spark.readStream.format("postbus").options(url=url, stream=stream, includeArchive="true", **given).load()


def _prepared(frame: DataFrame, options: TransformOptions, stream: str) -> DataFrame:
    """An input as the transform sees it: bad messages aside or refused, late ones marked."""
    from pyspark.sql import functions as F  # noqa: N812

    if options.bad_into is not None:
        frame = messages.only_good(frame)
    for written in options.watermark:
        of, column, delay = _watermark(written, options.inputs)
        if of in (None, stream):
            # Spark knows only columns as times of events, not fields of them.
            name = column.rpartition(".")[2]
            frame = (frame.withColumn(name, F.col(column)) if "." in column else frame).withWatermark(name, delay)
    return frame


def _watermark(written: str, inputs: tuple[str, ...]) -> tuple[str | None, str, str]:
    found = _WATERMARK.fullmatch(written.strip())
    if found is None or found["stream"] not in (None, *inputs):
        raise InvalidInput(
            f'"{written}" is not a watermark',
            "write 'published_at 10 minutes', or for one input 'orders: data.at 1 hour'",
        )
    return found["stream"], found["column"], found["delay"]


def _checked(frame: Any) -> DataFrame:
    if not hasattr(frame, "isStreaming"):
        raise InvalidInput(f"the function returned {type(frame).__name__}, not a DataFrame")
    if not frame.isStreaming:
        raise InvalidInput("the result does not depend on any of the streams", "let it select from one of them")
    result: DataFrame = frame
    return result


def _writer(url: str, frame: DataFrame, stream: str, writer: str, mode: str) -> Any:
    """Publishes each batch once."""

    # Spark's own sinks in Python know no update mode, and nothing can be sorted before them.
    def publish(batch: DataFrame, batch_id: int) -> None:
        wanted = messages.in_order(batch).write.format("postbus")
        wanted.options(url=url, stream=stream, writerId=writer, batchId=batch_id).mode("append").save()

    return frame.writeStream.foreachBatch(publish).outputMode(mode)


def _on_watermark(options: TransformOptions) -> str:
    """What to do about a query whose groups never end."""
    columns = [_watermark(written, options.inputs)[1] for written in options.watermark]
    fields = [column for column in columns if "." in column]
    if fields:
        name = fields[0].rpartition(".")[2]
        return f"the watermark is on a column {name}, made of {fields[0]}: write window({name}, …), not window({fields[0]}, …)"
    if columns:
        return f"group by window({columns[0]}, …), or use --output-mode update"
    return "add --watermark 'published_at 10 minutes', or --output-mode update"


def _refused(error: Exception, options: TransformOptions) -> InvalidInput:
    """What Spark has against a query, in a line."""
    first = str(error).strip().splitlines()[0]
    text = re.sub(r"\s*SQLSTATE:.*", "", re.sub(r"^\[([\w.]+)\]\s*", "", first))
    hint = None
    if "TABLE_OR_VIEW_NOT_FOUND" in first:
        hint = f"the tables are: {', '.join(f'`{stream}`' for stream in options.inputs)}"
    elif "OUTPUT_MODE" in first or "watermark" in first:
        hint = _on_watermark(options)
    return InvalidInput(f"Spark refuses the transform: {text}"[:500], hint)
