"""ingest: rows of files or of a table of Spark as messages of a stream.

The files of a step are noted in Postgres before they are read, and the step is published by a writer whose ledger knows the
last one. So what was killed goes on with the step that is next, and each file is published once. Rows that cannot be published
go to a stream of their own, with the reason, under the same ledger.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.model.errors import Conflict, InvalidInput
from postbus.model.keys import parse_template
from postbus.pipelines.ingest.files import FORMATS, Format
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

_OF_FILES: Final = ("files", "table", "query")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """What to ingest, and as what.

    Attributes:
        stream: The stream to publish to.
        files: A file, a folder with all that lies below it, or a pattern such as /in/*.csv; any path that Spark can reach.
        table: Or a table that the Spark session knows,
        query: or a query of Spark SQL.
        format: What the files are: json (a JSON object in each line), csv (with a header) or parquet; None goes by their names.
        schema: The columns and their types, such as "id bigint, name string"; None infers them from the files of the first
            step, and remembers them.
        key: The keys, with columns in braces: orders.{customer}.{id}. None publishes without keys.
        data: The column that becomes the data of a message; None takes the whole row, as JSON.
        headers: Columns that become headers, by the header's name.
        bad_into: The stream for rows that cannot be published, with the reasons; None is the stream's name and -bad. It is
            created when it is needed.
        separator: What stands between the values of a CSV file.
        multiline: Values of CSV files may have line breaks. A file is then read by one task.
        batch: How many files a step takes at most.
        every: In continuous mode, how many seconds to wait for more files,
        settle: and for how many seconds a file must not have changed.
        again: Begin anew: files that were published before are published once more.
    """

    stream: str
    files: str | None = None
    table: str | None = None
    query: str | None = None
    format: str | None = None
    schema: str | None = None
    key: str | None = None
    data: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    bad_into: str | None = None
    separator: str = ","
    multiline: bool = False
    batch: int = 1_000
    every: float = 10.0
    settle: float = 2.0
    again: bool = False

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if sum(getattr(self, name) is not None for name in _OF_FILES) != 1:
            raise InvalidInput("rows come from files, a table or a query", "give one of --files, --table and --query")
        if self.files is None and (self.format or self.schema):
            raise InvalidInput("a table or a query has columns of its own", "leave out --format and --schema")
        if self.format not in (None, *FORMATS):
            raise InvalidInput(f'format "{self.format}" is not known', f"there are: {', '.join(FORMATS)}")
        if self.batch < 1 or self.every <= 0 or self.settle < 0 or len(self.separator) != 1:
            raise InvalidInput(
                "options of ingest are out of range",
                "batch and every are above 0, settle is not below, and separator is one character",
            )
        if self.aside == self.stream:
            raise InvalidInput("rows that cannot be published need another stream", "name it with --bad-into")
        if self.key is not None:
            parse_template(self.key)

    @property
    def aside(self) -> str:
        """The stream for rows that cannot be published."""
        return self.bad_into or f"{self.stream}-bad"

    @property
    def source(self) -> str:
        """Where the rows come from, as the pipeline's name says it."""
        if self.files is None:
            return self.table or self.query or ""
        return self.files if ":" in self.files else str(Path(self.files).expanduser().absolute())

    def what(self) -> dict[str, Any]:
        """The options that decide what is published."""
        left_out = ("schema", "batch", "every", "settle", "again")
        return {name: value for name, value in asdict(self).items() if name not in left_out}


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
    """

    messages: int
    bad: int
    bad_into: str
    files: int
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


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
        Conflict: A run with other options is not done.
    """
    options.check()
    if continuous and options.files is None:
        raise InvalidInput("a table or a query has an end", "leave out --continuous")
    with active(spark):
        register(spark)
    own = spark_session.of_its_own(spark)
    name = f"ingest {options.stream} from {options.source}"
    with running(url, name, "ingest", options.stream, options, show=show) as run:
        plan = _planned(run, options)
        form = Format(options.format, options.separator, options.multiline)
        with session.transaction(url) as database:
            ((data_type, most_bytes),) = database.rows(STREAM_LIMITS, (options.stream,))
        work = Ingestion(run, options, own, spark, plan, form, data_type, most_bytes)
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
