"""ingest: rows of files or of a table of Spark as messages of a stream.

The files of a step are noted in Postgres before they are read, and the step is published by a writer whose ledger knows the
last one. So what was killed goes on with the step that is next, and each file is published once. Rows that cannot be published
go to a stream of their own, with the reason, under the same ledger.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from postbus.db import session
from postbus.model.errors import Conflict, InvalidInput
from postbus.pipelines.ingest.listing import Format
from postbus.pipelines.ingest.options import IngestOptions
from postbus.pipelines.ingest.statements import INGESTED_FILES
from postbus.pipelines.ingest.step import Ingestion, Plan
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.pipelines.runtime.statements import STREAM_LIMITS
from postbus.spark.compat import active
from postbus.spark.registration import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What a run has done.

    Attributes:
        messages: How many messages were published.
        bad: How many rows could not be, and are in the stream
        bad_into: of this name, with the reasons.
        files: How many files were read.
        changed: Files that have changed since they were read, now or earlier; what was added to them is not published.
        gone: Files that were deleted before they were read.
        schema_changes: What the schema has besides, since later files had it.
        redriven: How many rows that had gone aside were published; they are among the messages.
    """

    messages: int
    bad: int
    bad_into: str
    files: int
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    schema_changes: tuple[str, ...] = ()
    redriven: int = 0


def ingest_files(
    url: str, options: IngestOptions, *, spark: SparkSession, continuous: bool = False, show: Show | None = None
) -> Ingested:
    """Publish the rows of files or of a table, or go on where a run of the same was stopped or killed.

    Args:
        url: The database.
        options: What, and as what.
        spark: The Spark that does it.
        continuous: Go on with files that appear, until SIGINT or SIGTERM.
        show: Who shows the progress.

    Raises:
        InvalidInput: The options do not go together, or name columns that the rows do not have.
        NotFound: The stream does not exist, or there are no such files.
        Conflict: A run with other options is not done, or more rows went aside than max_bad allows.
    """
    options.check()
    if continuous and options.files is None:
        raise InvalidInput("a table or a query has an end", "leave out --continuous")
    with active(spark):
        register(spark)
    own = spark_session.of_its_own(spark)
    name = f"ingest {options.stream} from {options.source}"
    with running(url, name, "ingest", options.stream, options, show=show) as run:
        run.allow_aside(options.max_bad, options.aside, is_done=False)
        plan = _planned(run, options)
        form = Format(options.format, options.separator, options.multiline)
        with session.transaction(url) as database:
            ((data_type, most_bytes),) = database.rows(STREAM_LIMITS, (options.stream,))
        work = Ingestion(run, options, own, spark, plan, form, data_type, most_bytes)
        redriven = work.redrive() if options.redrive else 0
        while not run.is_stopping:
            if not work.step(settle=options.settle if continuous else 0):
                if not continuous:
                    break
                run.wait(options.every)
        with session.transaction(url) as database:
            changed = database.rows(INGESTED_FILES, (name, "changed"))
        return Ingested(
            messages=run.done,
            bad=work.bad,
            bad_into=options.aside,
            files=work.files,
            changed=tuple(path for (path,) in changed),
            gone=tuple(work.gone),
            schema_changes=tuple(work.schema_changes),
            redriven=redriven,
        )


def _planned(run: Run, options: IngestOptions) -> Plan:
    """In whose name, and by which schema, as it was decided when this first began."""
    new = Plan(f"ingest-{secrets.token_hex(8)}", options.schema, options.what())
    plan = Plan(**run.plan(asdict(new), anew=options.again))
    if plan.options != new.options:
        with session.transaction(run.url) as database:
            taken = database.rows(INGESTED_FILES, (run.name, "taken"))
        if taken:
            raise Conflict(
                f"files of {options.source} are on their way with other options",
                "run it to its end with those, or add --again to publish everything anew",
            )
        plan = Plan(plan.writer, plan.schema, new.options)
    if options.schema is not None and plan.schema != options.schema:
        plan = Plan(plan.writer, options.schema, plan.options)
    return Plan(**run.plan(asdict(plan), anew=True))
