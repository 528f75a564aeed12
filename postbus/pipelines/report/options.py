"""What a report is asked for. Known without Spark, so that a mistake is told before it starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from postbus.model.errors import InvalidInput
from postbus.pipelines.runtime.positions import time_of

FORMATS: Final = ("parquet", "csv", "json")
_MOST_KEYS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What to report on, and where to.

    Attributes:
        streams: The streams; none stands for all.
        out: The file of the page; None writes none.
        tables: A folder for the tables, if they are wanted.
        format: Of the tables: parquet, csv or json.
        start: Only what was published and finished since this time, or 7d for the last seven days.
        end: Only what was published and finished before this time.
        bucket: How many seconds a column of a chart stands for; None chooses.
        top: How many keys are named.
        archive: Whether to read the archive of a stream that has one, too.
    """

    streams: tuple[str, ...] = ()
    out: str | None = "report.html"
    tables: str | None = None
    format: str = "parquet"
    start: str | None = None
    end: str | None = None
    bucket: float | None = None
    top: int = 20
    archive: bool = True

    def check(self) -> None:
        """Refuse what cannot be, before Spark has worked for it.

        Raises:
            InvalidInput: An option is out of range, or a file cannot be written.
        """
        is_number = isinstance(self.top, int) and isinstance(self.bucket, int | float | None)
        if not is_number or not 1 <= self.top <= _MOST_KEYS or (self.bucket is not None and self.bucket <= 0):
            raise InvalidInput("options of report are out of range", f"top is 1 to {_MOST_KEYS}, bucket above 0")
        if self.format not in FORMATS:
            raise InvalidInput(f'format = "{self.format}" is not known', f"there are: {', '.join(FORMATS)}")
        start, end = self.times()
        if start is not None and end is not None and start >= end:
            raise InvalidInput("the time of the report ends before it begins")
        if self.out is not None:
            _check_file(Path(self.out).expanduser())

    def times(self) -> tuple[datetime | None, datetime | None]:
        """From when to when."""
        return time_of(self.start, "from"), time_of(self.end, "to")


def _check_file(file: Path) -> None:
    folder = file.absolute().parent
    if not folder.is_dir():
        raise InvalidInput(f"the folder {folder} for the report does not exist", f"make it with: mkdir -p {folder}")
    if file.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        raise InvalidInput(f"the report cannot be written to {file}", "name a file with --out report.html")
