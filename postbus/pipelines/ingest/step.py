"""The steps of an ingestion: which files are next, their rows as messages, and what is left aside."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.db.arrays import TextArray
from postbus.model.errors import Conflict
from postbus.pipelines.ingest import files
from postbus.pipelines.ingest.listing import Format, Listed, list_files
from postbus.pipelines.ingest.redrive import Redrive, as_aside
from postbus.pipelines.ingest.rows import as_messages, of_table
from postbus.pipelines.ingest.schema_changes import compare
from postbus.pipelines.ingest.statements import FINISH_FILES, TAKE_FILES
from postbus.pipelines.runtime.run import Run
from postbus.pipelines.runtime.statements import OPEN_ASIDE, SPARK_WRITTEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from postbus.pipelines.ingest.options import IngestOptions

# A step is one transaction, which holds back readers of the stream.
_STEP_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided when the pipeline began: the writer that publishes, the schema once it is known, the options."""

    writer: str
    schema: str | None
    options: dict[str, Any]


class Ingestion:
    """The work of one run."""

    def __init__(
        self,
        run: Run,
        options: IngestOptions,
        spark: SparkSession,
        users: SparkSession,
        plan: Plan,
        form: Format,
        data_type: str,
        most_bytes: int,
    ) -> None:
        self.bad = 0
        self.files = 0
        self.gone: list[str] = []
        self.schema_changes: list[str] = []
        self._run = run
        self._options = options
        self._spark = spark
        self._users = users
        self._plan = plan
        self._form = form
        self._data_type = data_type
        self._most_bytes = most_bytes
        self._listed: list[Listed] | None = None

    def step(self, *, settle: float) -> bool:
        """Publish the rows of the files that are next; whether there were any."""
        was_listed = self._listed is not None
        number, paths, gone = self._take(settle)
        if number is None and settle and was_listed:
            # More may lie there by now.
            self._listed = None
            number, paths, gone = self._take(settle)
        if number is None:
            self._listed = None
            return False
        count = bad = 0
        if paths:
            count, bad = self._publish(number, paths)
        with session.transaction(self._run.url) as database:
            gone_paths = TextArray([path.encode() for path in gone])
            database.rows(FINISH_FILES, (self._run.name, self._run.token, self._plan.writer, number, gone_paths))
        self.bad += bad
        self.files += len(paths)
        self.gone += gone
        self._run.note(count, None, aside=bad)
        return True

    def redrive(self) -> int:
        """Publish rows that went aside in earlier runs and fit by now; how many."""
        if self._plan.schema is None:
            return 0
        form = self._form
        if form.name is None:
            form = form.for_files([file.path for file in self._list(0)])
        redrive = Redrive(self._run, self._options.stream, self._options.aside, f"{self._plan.writer}-redriven")
        return redrive.run(
            self._spark,
            lambda rows: as_messages(
                files.read_aside(self._spark, form, rows, self._plan.schema or ""),
                self._options,
                self._data_type,
                self._most_bytes,
            ),
        )

    def _take(self, settle: float) -> tuple[int | None, list[str], list[str]]:
        """The step that is next, its files, and those of them that are not there any more."""
        if self._listed is None:
            self._listed = self._list(settle)
        with session.transaction(self._run.url) as database:
            listed = json.dumps([asdict(file) for file in self._listed])
            run = self._run
            rows = database.rows(
                TAKE_FILES,
                (run.name, run.token, self._plan.writer, listed, self._options.batch, _STEP_BYTES),
            )
        there = [path for _, path, is_there in rows if is_there]
        return (rows[0][0] if rows else None), there, [path for _, path, is_there in rows if not is_there]

    def _list(self, settle: float) -> list[Listed]:
        if self._options.files is None:
            return [Listed(self._options.source, 0, "epoch")]
        return list_files(self._spark, self._options.source, settle)

    def _publish(self, number: int, paths: list[str]) -> tuple[int, int]:
        """Publish the rows of a step, unless that was done, and put aside what cannot be; how many of each."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        messages = as_messages(self._rows(paths), self._options, self._data_type, self._most_bytes)
        written = self._written(self._options.stream)
        found_bad = True
        if written is None or written[0] < number:
            seen = Observation()
            observed = messages.observe(seen, F.count("problem").alias("bad"))
            self._write(
                observed.where("problem is null").select("key", "data", "headers"), self._options.stream, number
            )
            written = self._written(self._options.stream)
            found_bad = bool(seen.get["bad"])
        count = written[1] if written is not None else 0
        return count, self._put_aside(messages, number) if found_bad else 0

    def _put_aside(self, messages: DataFrame, number: int) -> int:
        with session.transaction(self._run.url) as database:
            database.rows(OPEN_ASIDE, (self._options.aside,))
        self._write(as_aside(messages, self._run.name), self._options.aside, number)
        written = self._written(self._options.aside)
        return written[1] if written is not None else 0

    def _rows(self, paths: list[str]) -> DataFrame:
        if self._options.files is None:
            return of_table(self._users, self._options.table, self._options.query)
        form = self._form.for_files(paths)
        if self._plan.schema is None:
            inferred = files.infer_schema(self._spark, form, paths)
            self._take_schema(inferred)
        elif self._options.schema_changes != "aside":
            self._follow_changes(form, paths)
        sizes = {file.path: file for file in self._listed or ()}
        return files.read_files(self._spark, form, [sizes[path] for path in paths], self._plan.schema or "")

    def _follow_changes(self, form: Format, paths: list[str]) -> None:
        """Compare the schema of files with the known one, and take what it has besides, or stop.

        Raises:
            Conflict: They differ, and the run is to stop then.
        """
        known = files.parse_schema(self._plan.schema or "")
        found = compare(known, files.parse_schema(files.infer_schema(self._spark, form, paths)))
        if self._options.schema_changes == "stop" and (found.changes or found.conflicts):
            raise Conflict(
                f"files have another schema: {'; '.join([*found.changes, *found.conflicts])}",
                "nothing of them was published; run it with --schema-changes evolve or aside, or with another --schema",
            )
        if found.changes:
            self.schema_changes += found.changes
            self._take_schema(found.schema.json())

    def _take_schema(self, schema: str) -> None:
        self._plan = replace(self._plan, schema=schema)
        self._run.plan(asdict(self._plan), anew=True)

    def _write(self, frame: DataFrame, stream: str, number: int) -> None:
        options = {"url": self._run.url, "stream": stream, "writerId": self._plan.writer, "batchId": str(number)}
        frame.write.format("postbus").options(**options).mode("append").save()

    def _written(self, stream: str) -> tuple[int, int] | None:
        """The last step that was published to a stream, and how many messages it had."""
        with session.transaction(self._run.url) as database:
            rows = database.rows(SPARK_WRITTEN, (stream, self._plan.writer))
        return (int(rows[0][0]), int(rows[0][1])) if rows else None
