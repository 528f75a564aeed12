"""What to ingest, and as what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from postbus.model.errors import InvalidInput
from postbus.model.keys import parse_template
from postbus.pipelines.runtime.limits import parse_limit

FORMATS: Final = ("json", "csv", "parquet")
SCHEMA_CHANGES: Final = ("aside", "evolve", "stop")
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
        schema_changes: What to do when later files have other columns or types. aside: rows that do not fit go aside. evolve: the
            schema takes new columns and wider types, and what still does not fit goes aside. stop: the run fails before it
            publishes anything of those files.
        key: The keys, with columns in braces: orders.{customer}.{id}. None publishes without keys.
        data: The column that becomes the data of a message; None takes the whole row, as JSON.
        headers: Columns that become headers, by the header's name.
        bad_into: The stream for rows that cannot be published, with the reasons; None is the stream's name and -bad. It is
            created when it is needed.
        separator: What stands between the values of a CSV file.
        multiline: Values of CSV files may have line breaks. A file is then read by one task.
        max_bad: Fail once more rows than this went aside: a number, or a share such as 1%.
        batch: How many files a step takes at most.
        every: In continuous mode, how many seconds to wait for more files,
        settle: and for how many seconds a file must not have changed.
        redrive: Publish rows that went aside in earlier runs and fit by now, each once, before anything else.
        again: Begin anew: files that were published before are published once more.
    """

    stream: str
    files: str | None = None
    table: str | None = None
    query: str | None = None
    format: str | None = None
    schema: str | None = None
    schema_changes: str = "aside"
    key: str | None = None
    data: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    bad_into: str | None = None
    separator: str = ","
    multiline: bool = False
    max_bad: str | None = None
    batch: int = 1_000
    every: float = 10.0
    settle: float = 2.0
    redrive: bool = False
    again: bool = False

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if sum(getattr(self, name) is not None for name in _OF_FILES) != 1:
            raise InvalidInput("rows come from files, a table or a query", "give one of --files, --table and --query")
        if self.files is None and (self.format or self.schema or self.schema_changes != "aside" or self.redrive):
            raise InvalidInput(
                "a table or a query has columns of its own",
                "leave out --format, --schema, --schema-changes and --redrive",
            )
        if self.format not in (None, *FORMATS):
            raise InvalidInput(f'format "{self.format}" is not known', f"there are: {', '.join(FORMATS)}")
        if self.schema_changes not in SCHEMA_CHANGES:
            raise InvalidInput(
                f'schema_changes = "{self.schema_changes}" is not known', f"there are: {', '.join(SCHEMA_CHANGES)}"
            )
        if self.batch < 1 or self.every <= 0 or self.settle < 0 or len(self.separator) != 1:
            raise InvalidInput(
                "options of ingest are out of range",
                "batch and every are above 0, settle is not below, and separator is one character",
            )
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
    def source(self) -> str:
        """Where the rows come from, as the pipeline's name says it."""
        if self.files is None:
            return self.table or self.query or ""
        return self.files if ":" in self.files else str(Path(self.files).expanduser().absolute())

    def what(self) -> dict[str, Any]:
        """The options that decide what is published."""
        left_out = ("schema", "schema_changes", "redrive", "max_bad", "batch", "every", "settle", "again")
        return {name: value for name, value in asdict(self).items() if name not in left_out}
