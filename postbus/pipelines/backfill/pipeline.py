"""backfill: the rows of a table of Postgres as messages of a stream, by ranges of its key that tasks read side by side.

The ranges are cut when a backfill first begins. All that a run reads, it reads at one snapshot, which the driver holds. Each
range is one transaction, with a note at which snapshot it was read; so what was killed goes on with the ranges that are left,
at a new snapshot, and each row comes once.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.db.url import without_password
from postbus.model.errors import Conflict, InvalidInput
from postbus.model.keys import KeyTemplate, escaped_token, parse_template
from postbus.pipelines.backfill.ranges import RESULT, RangeCopier, Target
from postbus.pipelines.backfill.statements import CLOSE_SNAPSHOT, OPEN_SNAPSHOT, PLAN_RANGES, RANGE_COUNTS
from postbus.pipelines.backfill.table_messages import Shape
from postbus.pipelines.backfill.tables import Moment, Table, held_moment
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.limits import parse_limit
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.pipelines.runtime.statements import STREAM_LIMITS
from postbus.spark.compat import parallelism
from postbus.spark.options import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS: Final = 1.0
# A task costs as much as some thousand rows; with several for each core the last ones end at about the same time.
_TASKS_PER_CORE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """What to publish, and as what.

    Attributes:
        stream: The stream to publish to.
        table: The table, such as shop.orders,
        query: or a query that only reads.
        source: The Postgres that has it, as a URL, env:NAME or file:PATH; None is the one of the stream.
        pk: The columns to cut it by, for a query or a table without a primary key. They need not be unique, and are best
            indexed.
        key: The keys, with columns in braces: orders.{customer}.{id}. None is the table's name and the primary key.
        data: The column that becomes the data of a message; None takes the whole row, as JSON.
        bad_into: The stream for rows that cannot be published, with the reasons; None is the stream's name and -bad. It is
            created when it is needed.
        max_bad: Fail once more rows than this went aside: a number, or a share such as 1%.
        batch: About how many rows a range, which is one transaction, has.
        again: Publish all rows once more; else a backfill that is done stays done.
    """

    stream: str
    table: str | None = None
    query: str | None = None
    source: str | None = None
    pk: tuple[str, ...] = ()
    key: str | None = None
    data: str | None = None
    bad_into: str | None = None
    max_bad: str | None = None
    batch: int = 50_000
    again: bool = False

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if (self.table is None) == (self.query is None):
            raise InvalidInput("rows come from a table or a query", "give one of --table and --query")
        if self.batch < 1:
            raise InvalidInput("batch has to be above 0")
        if self.aside == self.stream:
            raise InvalidInput("rows that cannot be published need another stream", "name it with --bad-into")
        parse_limit(self.max_bad)
        if self.key is not None:
            parse_template(self.key)

    @property
    def aside(self) -> str:
        """The stream for rows that cannot be published."""
        return self.bad_into or f"{self.stream}-bad"

    @property
    def shown_source(self) -> str | None:
        """The source without its password."""
        return None if self.source is None else without_password(self.source)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        place = "" if self.source is None else f" of {self.shown_source}"
        return f"backfill {self.stream} from {self.table or self.query}{place}"

    def what(self) -> dict[str, Any]:
        """The options that decide what is published."""
        left_out = ("max_bad", "batch", "again")
        found = {name: value for name, value in asdict(self).items() if name not in left_out}
        return {**found, "source": self.shown_source, "pk": list(self.pk)}

    def template(self, table: Table) -> KeyTemplate:
        """The template of keys."""
        if self.key is not None:
            return parse_template(self.key)
        first = f"{escaped_token(table.name)}." if table.name else ""
        return KeyTemplate((first, *["."] * (len(table.key) - 1), ""), tuple(column.name for column in table.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """What a run has done.

    Attributes:
        messages: How many messages were published.
        bad: How many rows could not be, and are in the stream
        bad_into: of this name, with the reasons.
        ranges_left: How many ranges are not done; above 0 when it was stopped.
        snapshot: The snapshot of the source that was read.
        wal_lsn: Where the WAL of the source was just before.
    """

    messages: int
    bad: int
    bad_into: str
    ranges_left: int
    snapshot: str
    wal_lsn: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was decided when a backfill began: its name among the ranges, the columns that they are cut by, the options."""

    writer: str
    pk: list[list[str]]
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Counts:
    """How far a backfill is."""

    messages: int
    bad: int
    open: tuple[int, ...]


def backfill_table(url: str, options: BackfillOptions, *, spark: SparkSession, show: Show | None = None) -> Backfilled:
    """Publish the rows of a table, or go on where a run of the same was stopped or killed.

    Args:
        url: The database of the stream.
        options: What, and as what.
        spark: The Spark that does it.
        show: Who shows the progress.

    Raises:
        InvalidInput: The options do not go together, or the table has no primary key.
        NotFound: The stream or the table does not exist.
        Conflict: A backfill with other options is not done, the table's key is another one since, or more rows went aside than
            max_bad allows.
    """
    options.check()
    own = spark_session.of_its_own(spark)
    source = Address(options.source or url)
    shown = dataclasses.replace(options, source=options.shown_source)
    with running(url, options.name, "backfill", options.stream, shown, show=show) as run:
        run.allow_aside(options.max_bad, options.aside, is_done=False)
        with held_moment(source.resolve()) as moment:
            table = moment.describe(options.table, options.query, options.pk)
            with session.transaction(url) as database:
                ((data_type, most_bytes),) = database.rows(STREAM_LIMITS, (options.stream,))
            shape = Shape(options.template(table), options.data, data_type, is_escaped=options.key is None)
            shape.check(table)
            plan = _planned(run, options, table)
            _cut(run, plan, moment, table, options.batch)
        before = _counts(url, plan.writer)
        # A later one, in which the ranges can be seen: in the stream's own database they are read and noted as done at it.
        with held_moment(source.resolve()) as moment:
            if before.open:
                target = Target(url, options.stream, most_bytes, options.aside)
                with _noted(run, moment) as snapshot_id:
                    copier = RangeCopier(
                        run.name,
                        plan.writer,
                        snapshot_id,
                        moment.id,
                        source,
                        table,
                        shape,
                        target,
                        before.open,
                        is_at_home=options.source is None,
                    )
                    _Job(run, own, copier, moment, table.row_estimate, before).run()
        after = _counts(url, plan.writer)
        return Backfilled(
            messages=after.messages - before.messages,
            bad=after.bad - before.bad,
            bad_into=options.aside,
            ranges_left=len(after.open),
            snapshot=moment.snapshot,
            wal_lsn=moment.wal_lsn,
        )


def _planned(run: Run, options: BackfillOptions, table: Table) -> _Plan:
    """What was decided when the backfill began."""
    columns = [[column.name, column.type] for column in table.key]
    new = _Plan(f"backfill-{secrets.token_hex(8)}", columns, options.what())
    plan = _Plan(**run.plan(asdict(new), anew=options.again))
    if (plan.options, plan.pk) != (new.options, new.pk):
        if _counts(run.url, plan.writer).open:
            raise Conflict(
                "a backfill with other options, or of another key, is not done",
                "run it to its end as it was begun, or add --again to publish all rows anew",
            )
        plan = _Plan(**run.plan(asdict(new), anew=True))
    return plan


def _cut(run: Run, plan: _Plan, moment: Moment, table: Table, rows: int) -> None:
    """Decide on the ranges, unless that was done."""
    counts = _counts(run.url, plan.writer)
    if counts.open or counts.messages or counts.bad:
        return
    ranges = [
        {"after_key": cut.after, "to_key": cut.to, "is_of_nulls": cut.is_of_nulls} for cut in moment.split(table, rows)
    ]
    with session.transaction(run.url) as database:
        database.rows(PLAN_RANGES, (run.name, run.token, plan.writer, json.dumps(ranges)))


def _counts(url: str, writer: str) -> _Counts:
    with session.transaction(url) as database:
        ((messages, bad, left),) = database.rows(RANGE_COUNTS, (writer,))
    return _Counts(messages, bad, tuple(left or ()))


@contextmanager
def _noted(run: Run, moment: Moment) -> Iterator[int]:
    """The number under which Postgres knows the snapshot. When this ends no range begins at it any more."""
    with session.transaction(run.url) as database:
        parameters = (run.name, run.token, moment.snapshot, moment.wal_lsn)
        snapshot_id = int(database.value(OPEN_SNAPSHOT, parameters))
    try:
        yield snapshot_id
    finally:
        _close(run.url, snapshot_id)


def _close(url: str, snapshot_id: int) -> None:
    with session.transaction(url) as database:
        database.rows(CLOSE_SNAPSHOT, (snapshot_id,))


class _Job:
    """One job of Spark over all ranges that are left, while this thread holds the snapshot and tells how far it is."""

    def __init__(
        self, run: Run, spark: SparkSession, copier: RangeCopier, moment: Moment, estimate: int, before: _Counts
    ) -> None:
        self._run = run
        self._spark = spark
        self._copier = copier
        self._moment = moment
        self._estimate = estimate
        self._noted = self._before = before.messages
        self._noted_bad = before.bad
        self._failure: BaseException | None = None
        self._tag = f"postbus-{copier.writer}"

    def run(self) -> None:
        """Copy the ranges. A signal ends it at once: what a range has published so far is rolled back with it.

        Raises:
            Exception: What made a task fail.
        """
        thread = threading.Thread(target=self._work, name=self._tag, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_SECONDS)
                if self._run.is_stopping:
                    _close(self._run.url, self._copier.snapshot_id)
                    self._spark.interruptTag(self._tag)
                self._moment.check()
                self._note()
        except BaseException:
            self._spark.interruptTag(self._tag)
            raise
        self._note()
        if self._failure is not None and not self._run.is_stopping:
            raise self._failure

    def _work(self) -> None:
        count = len(self._copier.numbers)
        try:
            self._spark.addTag(self._tag)
            tasks = min(count, _TASKS_PER_CORE * parallelism(self._spark))
            self._spark.range(0, count, 1, tasks).mapInArrow(self._copier, RESULT).collect()
        except BaseException as error:
            self._failure = error

    def _note(self) -> None:
        counts = _counts(self._run.url, self._copier.writer)
        total = max(self._estimate - self._before, counts.messages - self._before)
        count, aside = counts.messages - self._noted, counts.bad - self._noted_bad
        self._noted, self._noted_bad = counts.messages, counts.bad
        self._run.note(count, total, aside=aside)
