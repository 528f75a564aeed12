"""materialize: a stream of changes to a table of what holds now, or of all that held and when.

Steps of seqs are chosen in Postgres, as those of an archive. The table moves its position together with its rows: a table of
Postgres in one transaction, files by a pointer that names both. So a change counts once, although a run is killed at any moment.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from postbus.db import session
from postbus.model.errors import Conflict, InvalidInput
from postbus.pipelines.materialize import changes
from postbus.pipelines.materialize.changes import Decoder
from postbus.pipelines.materialize.fields import Field, grown, parse_fields
from postbus.pipelines.materialize.step_result import StepResult
from postbus.pipelines.materialize.to_files import Files
from postbus.pipelines.materialize.to_table import Table
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.limits import parse_limit
from postbus.pipelines.runtime.messages import marked
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.pipelines.runtime.statements import SPARK_WRITTEN
from postbus.spark.archive import find_archive
from postbus.spark.options import Address
from postbus.spark.plan import floor
from postbus.spark.slices import State, state_of
from postbus.spark.statements import SPARK_COMMIT, SPARK_END, SPARK_LOST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeOptions:
    """What to materialize, and where to.

    Attributes:
        stream: The stream, of type json. The row of a key is the data of its last message; one that deletes it, or null, ends it.
        table: The table, as name or schema.name. It is created if need be.
        table_url: The Postgres of the table, if it is another one; env:NAME and file:PATH name where it is written.
        to: Or a folder for snapshots of Parquet files; they go into a folder there that is named like the stream.
        changes: Whether data is a change, with `record` and `action` (insert, update, read or delete), instead of the row.
        history: Keep every version of a row, with valid_from, valid_to and is_current.
        schema: `id BIGINT, price DECIMAL(10,2), tags JSON`: the fields that become columns. None takes what messages have, and
            adds columns as new fields come.
        bad_into: Publish messages that do not fit to this stream, as they are; without it they fail the pipeline.
        max_bad: Fail once more messages than this went aside: a number, or a share such as 1%.
        batch: How many messages a step takes at most.
        every: In continuous mode, how many seconds to wait for more messages.
        consumer: By this name the stream shows how far the pipeline is.
        allow_loss: Go on when messages were purged before they were read.
        again: Empty the table and begin anew.
        source_table: The stream has changes of a source: mirror this table of it, as name or schema.name.
    """

    stream: str
    table: str | None = None
    table_url: str | None = None
    to: str | None = None
    changes: bool = False
    history: bool = False
    schema: str | None = None
    bad_into: str | None = None
    max_bad: str | None = None
    batch: int = 500_000
    every: float = 5.0
    consumer: str | None = None
    allow_loss: bool = False
    again: bool = False
    source_table: str | None = None

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if (self.table is None) == (self.to is None):
            raise InvalidInput("a stream becomes a table or files", "give one of --table and --to")
        if self.table_url is not None and self.table is None:
            raise InvalidInput("--table-url is for --table")
        parse_limit(self.max_bad)
        if self.max_bad is not None and self.bad_into is None:
            raise InvalidInput("--max-bad counts messages that are put aside", "add --bad-into STREAM")
        if self.bad_into == self.stream:
            raise InvalidInput("what does not fit cannot go back into the stream")
        if self.batch < 1 or self.every <= 0:
            raise InvalidInput("batch and every have to be above 0")
        if self.schema is not None:
            parse_fields(self.schema)

    @property
    def root(self) -> str:
        """The folder of the files."""
        to = self.to or ""
        folder = to if ":" in to else str(Path(to).expanduser().absolute())
        return f"{folder.rstrip('/')}/{self.stream}"

    @property
    def reader(self) -> str:
        """The consumer that shows how far the pipeline is."""
        place = self.table or Path(self.to or "").name
        return self.consumer or _NOT_IN_NAMES.sub("-", f"materialize-{place}")[:63]


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """What a run has done.

    Attributes:
        read: How many messages were read.
        aside: How many of them did not fit, and are in the other stream.
    """

    read: int
    aside: int


class _Target(Protocol):
    """What holds the rows: it takes the changes of a step, and lets them count together with the position."""

    def open(
        self, source: str, fields: tuple[Field, ...], start_seq: int, *, again: bool
    ) -> tuple[int, tuple[Field, ...]]: ...

    def take(self, frame: DataFrame, decoder: Decoder) -> StepResult: ...

    def commit(self, after_seq: int, to_seq: int, fields: tuple[Field, ...]) -> None: ...

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def materialize_stream(
    url: str, options: MaterializeOptions, *, spark: SparkSession, continuous: bool = False, show: Show | None = None
) -> Materialized:
    """Bring a table up to date with its stream, or keep it so until a signal comes.

    Args:
        url: The database of the stream.
        options: What, and where to.
        spark: The Spark that does it.
        continuous: Go on with what is published, until SIGINT or SIGTERM.
        show: Who shows the progress.

    Raises:
        InvalidInput: The options do not go together, or the stream is not of type json.
        NotFound: A stream does not exist.
        Conflict: The table is not of this stream, a message does not fit, more went aside than max_bad allows, or another run is
            at work.
    """
    options.check()
    wanted = None if options.schema is None else parse_fields(options.schema)
    own = spark_session.of_its_own(spark)
    name = f"materialize {options.stream} into {options.table or options.to}"
    shown = options if options.table_url is None else replace(options, table_url="another Postgres")
    with running(url, name, "materialize", options.stream, shown, consumer=options.reader, show=show) as run:
        run.allow_aside(options.max_bad, options.bad_into or "", is_done=True)
        keeper = _Keeper(run, own, options, wanted)
        try:
            keeper.open()
            while not run.is_stopping:
                if not keeper.step(None if continuous else keeper.end):
                    if not continuous:
                        break
                    run.wait(options.every)
        finally:
            keeper.close()
        return Materialized(read=run.done, aside=run.aside)


class _Keeper:
    """Takes a table from step to step."""

    def __init__(
        self, run: Run, spark: SparkSession, options: MaterializeOptions, wanted: tuple[Field, ...] | None
    ) -> None:
        self._run, self._spark, self._options, self._wanted = run, spark, options, wanted
        self._target: _Target
        if options.table is not None:
            address = Address(options.table_url or run.url)
            self._target = Table(address, options.table, is_history=options.history)
        else:
            self._target = Files(spark, options.root, is_history=options.history)
        self._writer = str(run.plan({"writer": f"materialize-{secrets.token_hex(8)}"}, anew=options.again)["writer"])
        self._at = 0
        self._fields: tuple[Field, ...] = ()
        self._is_open = False
        self.end = 0

    def open(self) -> None:
        """Find out where the table stands."""
        state, start = self._look()
        self.end = state.horizon
        source = f"{state.system}/{state.timeline}/{state.stream_id}"
        known = self._target.open(source, self._wanted or (), start, again=self._options.again)
        self._is_open = True
        self._at = known[0]
        self._fields = self._checked(known[1])
        self._note_position()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._is_open:
            self._target.close()

    def step(self, end: int | None) -> bool:
        """Take the next range up to an end; whether there was one."""
        to = self._end(end)
        if to == self._at:
            return False
        places = {"startingPosition": str(self._at + 1), "endingPosition": str(to), "includeArchive": "true"}
        options = {"url": self._run.url, "stream": self._options.stream, **places}
        frame = self._spark.read.format("postbus").options(**options).load()
        fields = self._fields
        source_table = self._options.source_table
        of_records = self._options.changes or source_table is not None
        if self._wanted is None:
            fields = grown(fields, changes.suggested(frame, of_records=of_records, source_table=source_table))
        decoder = Decoder(fields, of_records, is_exact=self._wanted is None, source_table=source_table)
        taken = self._target.take(frame, decoder)
        if taken.bad:
            self._put_aside(frame, decoder, taken, to)
        # A run that was replaced finds it out here, before anything counts.
        self._run.note(0, None)
        self._target.commit(self._at, to, fields)
        self._at, self._fields = to, fields
        self._note_position()
        total = self._run.done + taken.count + max(0, self.end - to)
        self._run.note(taken.count, total, to, aside=taken.bad)
        return True

    def _look(self) -> tuple[State, int]:
        """The stream, and the seq above which it can be read."""
        with session.transaction(self._run.url) as database:
            state = state_of(database, self._options.stream)
            start = floor(state, find_archive(database, self._options.stream))
        if state.data_type != "json":
            raise InvalidInput(f'stream "{self._options.stream}" holds {state.data_type}, and a table is made of json')
        return state, start

    def _checked(self, known: tuple[Field, ...]) -> tuple[Field, ...]:
        """The fields that the table has and those that are wanted besides."""
        types = {field.name: field.type for field in known}
        for field in self._wanted or ():
            if types.get(field.name, field.type) != field.type:
                raise Conflict(
                    f"field {field.name} of the table is {types[field.name]}, and --schema says {field.type}",
                    "keep its type, or make another table",
                )
        return (*known, *(field for field in self._wanted or () if field.name not in types))

    def _end(self, end: int | None) -> int:
        """Where the next step ends."""
        options = self._options
        with session.transaction(self._run.url) as database:
            state, archive = state_of(database, options.stream), find_archive(database, options.stream)
            if archive is not None and archive.start_after <= self._at < archive.position_seq:
                last = archive.position_seq if end is None else min(end, archive.position_seq)
                return max(self._at, min(last, self._at + options.batch))
            ((purged, _),) = database.rows(SPARK_LOST, (state.stream_id, self._at))
            if purged and not options.allow_loss:
                raise Conflict(
                    f'messages of stream "{options.stream}" from seq {self._at + 1} to {state.start_seq - 1} were purged '
                    "before they were read",
                    "to go on with what is left, add --allow-loss",
                )
            return int(database.value(SPARK_END, (options.stream, self._at, end, options.batch, None)))

    def _put_aside(self, frame: DataFrame, decoder: Decoder, taken: StepResult, to: int) -> None:
        """Publish what does not fit, unless an earlier run of this step did.

        Raises:
            Conflict: There is no stream for it.
        """
        from pyspark.sql import functions as F  # noqa: N812

        into = self._options.bad_into
        if into is None:
            self._target.abandon()
            raise Conflict(
                f'message {taken.bad_seq} of stream "{self._options.stream}" does not fit: {taken.problem}',
                "put such messages aside with --bad-into STREAM, or change --schema",
            )
        with session.transaction(self._run.url) as database:
            rows = database.rows(SPARK_WRITTEN, (into, self._writer))
        done = int(rows[0][0]) if rows else 0
        bad = changes.decoded(frame, decoder).where(F.col("problem").isNotNull()).select("seq", "problem")
        whole = frame.where(F.col("seq") > done).join(bad, "seq").sort("seq")
        wanted = whole.select("key", "data", marked(self._options.stream, F.col("problem"))).write.format("postbus")
        wanted.options(url=self._run.url, stream=into, writerId=self._writer, batchId=to).mode("append").save()

    def _note_position(self) -> None:
        with session.transaction(self._run.url) as database:
            database.rows(SPARK_COMMIT, (self._options.stream, self._options.reader, self._at))
