"""archive: a stream to Parquet files by date, in steps that each are one transaction of the manifest.

A step reads a range of seqs, writes it to a new folder, looks at what lies there, and lists these files in Postgres while it
moves the archive's position and its consumer's. Killed before that, it leaves a folder that nobody lists; the next run takes
the same step again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from postbus.db import session
from postbus.db.arrow import MessageFilter
from postbus.db.session import Session
from postbus.model.errors import Conflict, InvalidInput
from postbus.pipelines.archive import delta, manifest
from postbus.pipelines.archive.statements import COMMIT_ARCHIVE, OPEN_ARCHIVE
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.spark.archive import CONSUMER, Archive, archive_of, find_archive
from postbus.spark.options import Address
from postbus.spark.slices import State, split, state_of
from postbus.spark.statements import SPARK_END, SPARK_LOST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_TOKENS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """What to archive, and where to.

    Attributes:
        stream: The stream.
        to: A folder of this machine, or any path that Spark can reach, such as s3a://bucket/lake. The files go into a folder
            there that is named like the stream. None is for an archive that exists.
        batch: How many messages a step takes at most.
        key_tokens: How many tokens of the key become folders, below the date.
        every: In continuous mode, how many seconds to wait for more messages.
        allow_loss: Go on when messages were purged before they were archived, and note it, instead of failing.
        format: "parquet", or "delta": then the folder is a Delta table too, and stays one.
    """

    stream: str
    to: str | None = None
    batch: int = 1_000_000
    key_tokens: int = 0
    every: float = 10.0
    allow_loss: bool = False
    format: str = "parquet"

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: An option is out of range.
        """
        if self.batch < 1 or self.every <= 0 or not 0 <= self.key_tokens <= _MOST_TOKENS:
            raise InvalidInput(
                "options of archive are out of range", f"batch and every are above 0, key_tokens 0 to {_MOST_TOKENS}"
            )
        if self.format not in delta.FORMATS:
            raise InvalidInput(f'an archive has no format "{self.format}"', "it is parquet or delta")
        if self.format == "delta":
            delta.require()

    def root(self, known: Archive | None) -> str:
        """The folder of the archive.

        Raises:
            InvalidInput: There is none yet, and none is named.
        """
        if self.to is None:
            if known is None:
                raise InvalidInput(
                    f'stream "{self.stream}" has no archive, and no folder is named for one',
                    "add --to /path/of/the/lake",
                )
            return known.root
        folder = self.to if ":" in self.to else str(Path(self.to).expanduser().absolute())
        return f"{folder.rstrip('/')}/{self.stream}"


def archive_stream(
    url: str, options: ArchiveOptions, *, spark: SparkSession, continuous: bool = False, show: Show | None = None
) -> int:
    """Archive a stream: what is there now, or from now on until a signal comes.

    Args:
        url: The database.
        options: What, and where to.
        spark: The Spark that does it.
        continuous: Go on with what is published, until SIGINT or SIGTERM.
        show: Who shows the progress.

    Returns:
        How many messages were archived.

    Raises:
        NotFound: The stream does not exist.
        Conflict: The archive lies in another folder, another run is at work, or messages were purged before they were archived.
    """
    options.check()
    own = spark_session.of_its_own(spark)
    name = f"archive {options.stream}"
    with running(url, name, "archive", options.stream, options, consumer=CONSUMER, show=show) as run:
        with session.transaction(url) as database:
            root = options.root(find_archive(database, options.stream))
            if options.format == "delta":
                delta.require(root)
            database.rows(OPEN_ARCHIVE, (options.stream, root, CONSUMER, options.format))
            end = None if continuous else state_of(database, options.stream).horizon
        # What a run left that was killed.
        delta.mirror(url, options.stream, options.key_tokens)
        while not run.is_stopping:
            if _step(run, own, options, end):
                delta.mirror(url, options.stream)
            elif continuous:
                run.wait(options.every)
            else:
                break
        return run.done


def _step(run: Run, spark: SparkSession, options: ArchiveOptions, end: int | None) -> bool:
    """Archive the next range up to an end; whether there was one."""
    with session.transaction(run.url) as database:
        state, known = state_of(database, options.stream), archive_of(database, options.stream)
        after = known.position_seq
        if _skip_lost(database, state, known, options):
            return True
        to = database.value(SPARK_END, (options.stream, after, end, options.batch, None))
    if to == after:
        return False
    files = _write(run.url, spark, options, state, known, to)
    count = _commit(run.url, options.stream, after, to, files)
    run.note(count, run.done + count + max(0, (end or state.horizon) - to), to)
    return True


def _write(
    url: str, spark: SparkSession, options: ArchiveOptions, state: State, known: Archive, to: int
) -> list[manifest.File]:
    """Write the messages up to a seq to files: by tasks that have both the log and the folder, or by Spark, which reaches
    folders elsewhere, and sorts by folder where keys are folders.
    """
    after, folder = known.position_seq, manifest.local_path(known.root)
    if folder is not None and options.key_tokens == 0:
        with session.transaction(url) as database:
            slices = split(database, state, after, to, messages=MessageFilter())
        return manifest.archive_slices(spark, Address(url), slices, folder, after + 1, state.data_type)
    reader = spark.read.format("postbus").options(
        url=url, stream=options.stream, startingPosition=after + 1, endingPosition=to
    )
    written = manifest.write_files(reader.load(), known.root, after + 1, options.key_tokens)
    return manifest.describe(manifest.read_files(spark, known.root, [written], state.data_type), known.root)


def _commit(url: str, stream: str, after: int, to: int, files: list[manifest.File], *, is_lost: bool = False) -> int:
    written = json.dumps([file.as_json() for file in files])
    with session.transaction(url) as database:
        return int(database.value(COMMIT_ARCHIVE, (stream, CONSUMER, after, to, written, is_lost)))


def _skip_lost(database: Session, state: State, known: Archive, options: ArchiveOptions) -> bool:
    """Whether messages were purged before they were archived, and this is now noted."""
    ((purged, _),) = database.rows(SPARK_LOST, (state.stream_id, known.position_seq))
    if not purged:
        return False
    first, last = known.position_seq + 1, state.start_seq - 1
    if not options.allow_loss:
        raise Conflict(
            f'messages of stream "{options.stream}" from seq {first} to {last} were purged before they were archived',
            "to note the gap and go on with what is left, add --allow-loss",
        )
    database.rows(COMMIT_ARCHIVE, (options.stream, CONSUMER, known.position_seq, last, "[]", True))
    return True
