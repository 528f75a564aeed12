"""Declarative pipelines of Spark (`pyspark.pipelines`), known to Postgres while they run.

Their own code says which streams they read and write. Spark keeps how far each flow is below the storage that their file names; a
sink into a stream notes each batch, so that what was killed and is run again publishes nothing twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postbus.db import session
from postbus.model.errors import Error, InvalidInput
from postbus.pipelines.runtime.failures import is_of_spark
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.queries import BEAT_SECONDS, LOOK_SECONDS, dropped, ends
from postbus.pipelines.runtime.run import Run, running
from postbus.spark.slices import state_of
from postbus.spark.statements import SPARK_COMMIT

if TYPE_CHECKING:
    from pyspark.pipelines.cli import PipelineSpec
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarativeOptions:
    """Which pipeline to run.

    Attributes:
        stream: The stream it reads whose messages count as its progress.
        pipeline: The file of the pipeline, such as spark-pipeline.yml.
        consumer: By this name the stream shows how far the pipeline is.
        name: The name of its runs, where there are several.
    """

    stream: str
    pipeline: str
    consumer: str | None = None
    name: str | None = None

    def check(self) -> None:
        """Refuse a file that is none, or describes no pipeline.

        Raises:
            InvalidInput: It is so.
        """
        self.specification()

    @property
    def file(self) -> Path:
        """The file of the pipeline."""
        return Path(self.pipeline).expanduser().absolute()

    def specification(self) -> PipelineSpec:
        """What the file says.

        Raises:
            InvalidInput: It cannot be read, or describes no pipeline.
        """
        import yaml
        from pyspark.errors import PySparkException
        from pyspark.pipelines.cli import load_pipeline_spec

        if not self.file.is_file():
            raise InvalidInput(f"there is no file {self.pipeline}", "name the spark-pipeline.yml of a pipeline")
        try:
            return load_pipeline_spec(self.file)
        except (PySparkException, yaml.YAMLError, OSError, TypeError, KeyError, ValueError) as error:
            text = " ".join(str(error).split())[:300]
            raise InvalidInput(
                f"{self.pipeline} describes no pipeline: {text}", "it has name, storage and libraries"
            ) from error


def run_declarative(url: str, options: DeclarativeOptions, *, spark: SparkSession, show: Show | None = None) -> int:
    """Run a declarative pipeline on what is there now.

    Args:
        url: The database that has the stream.
        options: Which pipeline.
        spark: A session of Spark Connect: Spark runs declarative pipelines on no other.
        show: Who shows the progress.

    Returns:
        How many messages of the stream were read, by all flows together.

    Raises:
        InvalidInput: The pipeline cannot be loaded, or the session is not one of Spark Connect.
        NotFound: The stream does not exist.
    """
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "declarative pipelines run on Spark Connect", "give a session of SparkSession.builder.remote"
        )
    specification = options.specification()
    consumer = options.consumer or f"transform-{specification.name}"[:63]
    name = options.name or f"transform {options.stream} by {specification.name}"
    with running(url, name, "transform", options.stream, options, consumer=consumer, show=show) as run:
        with _listening(run, spark, options.stream) as flows, ThreadPoolExecutor(1) as thread:
            graph = _loaded(spark, options.file, specification)
            _follow(run, spark, flows, thread.submit(_drain, spark, graph, _storage(options.file, specification)))
        if not run.is_stopping:
            flows.commit(consumer)
        return run.done


class _Flows:
    """How far the flows have come with the stream, as Spark tells of their batches."""

    def __init__(self, run: Run, stream: str) -> None:
        self._run = run
        self._stream = stream
        with session.transaction(run.url) as database:
            self._state = state_of(database, stream)
        self._at: dict[str, int] = {}
        self._new = self._late = 0
        self._noted_at = time.monotonic()

    def add(self, progress: Any) -> None:
        """A batch of a flow is done. Spark calls this in a thread of its own."""
        seq = ends(progress, self._state.system).get(self._state.stream_id)
        if seq is not None:
            self._at[str(progress["id"])] = seq
            self._new += sum(source["numInputRows"] for source in progress["sources"])
            self._late += dropped(progress)

    def note(self) -> None:
        """Tell Postgres, also that the run lives."""
        if self._new or time.monotonic() - self._noted_at > BEAT_SECONDS:
            self._noted_at = time.monotonic()
            count, self._new = self._new, 0
            late, self._late = self._late, 0
            self._run.note(count, None, min(self._at.values(), default=None), late=late)

    def commit(self, consumer: str) -> None:
        """Note as the consumer's position what the slowest flow has read."""
        self.note()
        if self._at:
            with session.transaction(self._run.url) as database:
                database.rows(SPARK_COMMIT, (self._stream, consumer, min(self._at.values())))


@contextmanager
def _listening(run: Run, spark: SparkSession, stream: str) -> Iterator[_Flows]:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    flows = _Flows(run, stream)

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            flows.add(event.progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        yield flows
    finally:
        spark.streams.removeListener(listener)


def _loaded(spark: SparkSession, file: Path, specification: PipelineSpec) -> str:
    """The graph of what the pipeline's files declare."""
    from pyspark.pipelines.cli import register_definitions
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

    graph = create_dataflow_graph(
        spark,
        default_catalog=specification.catalog,
        default_database=specification.database,
        sql_conf=specification.configuration,
    )
    registry = SparkConnectGraphElementRegistry(spark, graph)
    try:
        # Spark tells of each file, on stdout.
        with redirect_stdout(sys.stderr):
            register_definitions(file, registry, specification, spark, graph)
    except Error:
        raise
    except Exception as error:
        if is_of_spark(error):
            raise
        raise InvalidInput(f"{file.name} cannot be loaded: {type(error).__name__}: {error}"[:500]) from error
    return graph


def _storage(file: Path, specification: PipelineSpec) -> str:
    """Where Spark keeps checkpoints, which it wants as a URI; a folder is meant from where the file lies."""
    written = specification.storage
    return written if ":" in written else (file.parent / Path(written).expanduser()).as_uri()


def _drain(spark: SparkSession, graph: str, storage: str) -> None:
    """Run a graph to its end."""
    from pyspark.errors import PySparkValueError
    from pyspark.pipelines.spark_connect_pipeline import start_run

    nothing: dict[str, Any] = {"full_refresh": [], "full_refresh_all": False, "refresh": []}
    ended = False
    try:
        for result in start_run(spark, graph, **nothing, dry=False, storage=storage):
            event = result.get("pipeline_event_result")
            ended = ended or (event is not None and event.event.message.startswith("Run is COMPLETED"))
    except PySparkValueError:
        # After the end come counters of the Python tasks, which this part of Spark's client does not know.
        if not ended:
            raise


def _follow(run: Run, spark: SparkSession, flows: _Flows, running: Future[None]) -> None:
    """Wait for the end, which a signal brings about: what is not committed is done again by the next run."""
    try:
        while not running.done():
            run.pause(LOOK_SECONDS)
            flows.note()
            if run.is_stopping:
                break
    finally:
        if not running.done():
            spark.interruptAll()
    try:
        running.result()
    except Exception as error:
        if not (run.is_stopping and is_of_spark(error)):
            raise
