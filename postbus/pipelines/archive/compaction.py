"""compact: merges small files, expires old messages, and deletes files that are no longer listed.

Safe beside a running archive and readers: files are replaced in one transaction of the manifest, which proves by count and
checksum that the new ones hold the same, and are deleted a day later, when nobody reads them any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.db import session
from postbus.db.arrays import BigintArray
from postbus.model.errors import InvalidInput
from postbus.pipelines.archive import delta, manifest
from postbus.pipelines.archive.statements import (
    ARCHIVE_FOLDERS,
    EXPIRE_ARCHIVE,
    FORGET_FILES,
    REMOVED_FILES,
    REPLACE_FILES,
)
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.spark.archive import Archive, archive_of, filesystem, lake_schema
from postbus.spark.slices import state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """How an archive is kept.

    Attributes:
        stream: The stream whose archive it is.
        file_bytes: About how large files become. Those of half the size or more are left as they are.
        keep: For how many seconds messages stay in the archive; None keeps them for ever.
        grace: How many seconds files that do not count any more stay, for those who still read them.
    """

    stream: str
    file_bytes: int = 128 * 1024 * 1024
    keep: float | None = None
    grace: float = 86400.0

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: An option is out of range.
        """
        if self.file_bytes < 1 or self.grace < 0 or (self.keep is not None and self.keep <= 0):
            raise InvalidInput(
                "options of compact are out of range", "file_bytes and keep are above 0, grace is not below"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What was done.

    Attributes:
        compacted: How many files were merged.
        into: How many files they became.
        expired: How many old messages were removed.
        deleted: How many unlisted files and folders were deleted.
    """

    compacted: int
    into: int
    expired: int
    deleted: int


def compact_archive(
    url: str, options: CompactionOptions, *, spark: SparkSession, show: Show | None = None
) -> CompactionResult:
    """Compact an archive once: merge small files, expire old messages, delete files that are no longer listed.

    Raises:
        NotFound: The stream, or its archive, does not exist.
        Conflict: New files do not hold what the old ones did, or another run was faster; nothing is lost.
    """
    options.check()
    own = spark_session.of_its_own(spark)
    with running(url, f"compact {options.stream}", "compact", options.stream, options, show=show) as run:
        expired = _expire(run, options)
        delta.mirror(url, options.stream)
        compacted = into = 0
        for count, new in _compact(run, own, options):
            compacted, into = compacted + count, into + new
            if run.is_stopping:
                break
        # Before the files that it names no longer are deleted.
        delta.mirror(url, options.stream)
        deleted = _delete(run, options)
    return CompactionResult(compacted=compacted, into=into, expired=expired, deleted=deleted)


def _expire(run: Run, options: CompactionOptions) -> int:
    if options.keep is None:
        return 0
    before = datetime.now(UTC) - timedelta(seconds=options.keep)
    with session.transaction(run.url) as database:
        return int(database.value(EXPIRE_ARCHIVE, (options.stream, before)))


def _compact(run: Run, spark: SparkSession, options: CompactionOptions) -> Iterator[tuple[int, int]]:
    """Make one of several files, group by group; how many they were and became."""
    with session.transaction(run.url) as database:
        data_type = state_of(database, options.stream).data_type
        known = archive_of(database, options.stream)
        listed = manifest.listed_files(database, options.stream)
    groups = list(groups_of(listed, options.file_bytes))
    total = sum(file.message_count for group in groups for file in group)
    for group in groups:
        if _has_more_columns(known, group, data_type):
            continue
        paths = [file.path for file in group]
        frame = manifest.read_files(spark, known.root, paths, data_type).coalesce(1)
        folder = manifest.write_files(frame, known.root, group[0].first_seq, _key_tokens(group[0]))
        files = manifest.describe(manifest.read_files(spark, known.root, [folder], data_type), known.root)
        written = json.dumps([file.as_json() for file in files])
        with session.transaction(run.url) as database:
            ids = BigintArray([file.id for file in group])
            count = database.value(REPLACE_FILES, (options.stream, ids, written))
        run.note(count, total)
        yield len(group), len(files)


def groups_of(files: Iterable[manifest.Listed], target: int) -> Iterator[list[manifest.Listed]]:
    """Neighbours of one place that together are not larger than the target; files of half its size stay as they are."""
    places: dict[str, list[manifest.Listed]] = {}
    for file in files:
        places.setdefault(_place(file), []).append(file)
    for of_place in places.values():
        group: list[manifest.Listed] = []
        for file in of_place:
            is_large = file.bytes >= target / 2
            if is_large or sum(each.bytes for each in group) + file.bytes > target:
                if len(group) > 1:
                    yield group
                group = []
            if not is_large:
                group.append(file)
        if len(group) > 1:
            yield group


def _place(file: manifest.Listed) -> str:
    """Its folders by date and key, which files that become one share."""
    return "/".join(file.path.split("/")[1:-1])


def _key_tokens(file: manifest.Listed) -> int:
    return len(_place(file).split("/")) - 1


def _has_more_columns(known: Archive, group: Iterable[manifest.Listed], data_type: str) -> bool:
    """Whether a file has columns that this version does not know, and would lose."""
    from pyarrow import parquet

    system, folder = filesystem(known.root)
    names = set(lake_schema(data_type).fieldNames())
    return any(set(parquet.read_schema(f"{folder}/{file.path}", filesystem=system).names) - names for file in group)


def _delete(run: Run, options: CompactionOptions) -> int:
    """Delete what does not count since the grace began: files that were replaced, and folders of steps that were cut short."""
    before = datetime.now(UTC) - timedelta(seconds=options.grace)
    with session.transaction(run.url) as database:
        known = archive_of(database, options.stream)
        removed = database.rows(REMOVED_FILES, (options.stream, before))
    system, root = filesystem(known.root)
    # Before anything is deleted, which makes a folder look new.
    quiet = [name for name in _folders(system, root) if _newest(system, f"{root}/{name}") < before]
    for _, path in removed:
        _forgiving(system.delete_file, f"{root}/{path}")
    with session.transaction(run.url) as database:
        database.rows(FORGET_FILES, (options.stream, BigintArray([number for number, _ in removed])))
        listed = {name for (name,) in database.rows(ARCHIVE_FOLDERS, (options.stream,))}
    left = [name for name in quiet if name not in listed]
    for name in left:
        _forgiving(system.delete_dir, f"{root}/{name}")
    return len(removed) + len(left)


def _folders(system: Any, root: str) -> list[str]:
    """The folders of steps."""
    from pyarrow import fs

    found = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return [info.base_name for info in found if info.type == fs.FileType.Directory and info.base_name != delta.LOG]


def _newest(system: Any, folder: str) -> datetime:
    """When something was last written below a folder. Object stores know no times of folders."""
    from pyarrow import fs

    infos = [system.get_file_info(folder), *system.get_file_info(fs.FileSelector(folder, recursive=True))]
    return max((info.mtime for info in infos if info.mtime is not None), default=datetime.now(UTC))


def _forgiving(delete: Any, path: str) -> None:
    """Delete what may be gone already."""
    try:
        delete(path)
    except FileNotFoundError:
        return
