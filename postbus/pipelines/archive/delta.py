"""An archive as a Delta table: a log in its folder, which follows the manifest and decides nothing.

The mirror compares what the manifest lists with what the table has, and commits the difference. Whoever is killed before that
leaves it to the next run of archive or compact.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql import types

from postbus.db import session
from postbus.model.errors import Conflict, Error, InvalidInput, Unavailable
from postbus.pipelines.archive import manifest
from postbus.pipelines.archive.statements import ARCHIVE_FORMAT
from postbus.spark.archive import Archive, archive_of, filesystem, lake_schema
from postbus.spark.slices import state_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction

FORMATS: Final = ("parquet", "delta")
LOG: Final = "_delta_log"
_ATTEMPTS: Final = 20
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_COLOUR: Final = re.compile(r"\x1b\[\d+m")
# Files that were replaced are deleted, so that old versions of the table cannot be read for long anyway.
_SETTINGS: Final = {"delta.logRetentionDuration": "interval 7 days"}


def require(root: str | None = None) -> None:
    """Refuse what cannot be a Delta table.

    Raises:
        Error: deltalake is not installed.
        InvalidInput: It does not find this folder.
    """
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise Error(
            "deltalake, which writes Delta tables, is not installed", "run: pip install 'postbus[delta]'"
        ) from error
    if root is not None and "%" in root:
        raise InvalidInput(f"{root} cannot be a Delta table", "deltalake does not find folders with % in their names")


def mirror(url: str, stream: str, key_tokens: int | None = None) -> None:
    """Bring the Delta table of an archive in step with its manifest; nothing is to be done when the archive is none.

    Args:
        url: The database.
        stream: The stream.
        key_tokens: How many tokens of the key will be folders of files to come.

    Raises:
        Error: deltalake is not installed.
        Conflict: The table has columns for folders that files lack, or others write to it all the time.
        Unavailable: The table cannot be read or written.
    """
    with session.transaction(url) as database:
        if database.value(ARCHIVE_FORMAT, (stream,)) != "delta":
            return
        root = archive_of(database, stream).root
    require(root)
    from deltalake.exceptions import CommitFailedError

    failure: Exception | None = None
    with _failing_clearly(root):
        for _ in range(_ATTEMPTS):
            try:
                if _catch_up(url, stream, root, key_tokens):
                    return
            except CommitFailedError as error:
                failure = error
    raise Conflict(f"others write to the Delta table in {root} all the time", "run it again") from failure


def _catch_up(url: str, stream: str, root: str, key_tokens: int | None) -> bool:
    """Make the table, or commit what it lacks and has too much; whether nothing is left to do.

    The manifest is read after the table, and a commit that is not the table's next one fails. So no version shows an older
    manifest than the version before it, however many mirrors are at work.
    """
    table = _table(root)
    with session.transaction(url) as database:
        known, data_type = archive_of(database, stream), state_of(database, stream).data_type
        files = manifest.listed_files(database, stream)
    depths = [len(_folders(file)) for file in files] + ([] if key_tokens is None else [1 + key_tokens])
    if table is None:
        if depths:
            _create(root, stream, data_type, min(depths))
        return not depths
    columns = table.metadata().partition_columns
    if depths and min(depths) < len(columns):
        raise Conflict(
            f"the Delta table in {root} has the columns {', '.join(columns)}, and not all files have these folders",
            f"add --key-tokens {len(columns) - 1}; for a table with fewer columns, delete the folder {LOG} first",
        )
    actions = _actions(table, known, files, columns)
    if actions:
        table.create_write_transaction(actions, "append", table.schema(), columns, commit_properties=_once())
    return True


def _table(root: str) -> DeltaTable | None:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(_place(root))
    except TableNotFoundError:
        return None


def _create(root: str, stream: str, data_type: str, depth: int) -> None:
    from deltalake import DeltaTable

    schema = _schema(data_type, depth)
    columns = [field.name for field in schema.fields[-depth:]]
    DeltaTable.create(
        _place(root),
        schema,
        mode="ignore",
        partition_by=columns,
        name=stream,
        description=f"The archive of stream {stream}, which Postbus writes",
        configuration=_SETTINGS,
        commit_properties=_once(),
    )


def _schema(data_type: str, depth: int) -> Schema:
    """The columns of files, and one for each folder. Delta writes them down as Spark does."""
    from deltalake import Schema

    schema = lake_schema(data_type).add("date", types.DateType())
    for place in range(1, depth):
        schema = schema.add(f"key_{place}", types.StringType())
    return Schema.from_json(schema.json())


def _actions(
    table: DeltaTable, known: Archive, files: Sequence[manifest.Listed], columns: Sequence[str]
) -> list[AddAction | RemoveAction]:
    """What makes the table's files those that are listed.

    A change of data is what those who follow the table have to know: messages that it did not have, and that it has no longer,
    but not that others hold them now.
    """
    from deltalake.transaction import AddAction, RemoveAction

    present = _present(table)
    newest = max(present.values(), default=0)
    listed = {file.path for file in files}
    new = [file for file in files if file.path not in present]
    # A file with old and new messages can only be told of as if all were new.
    is_mixed = any(file.first_seq <= newest < file.last_seq for file in new)
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(path, is_mixed or last_seq <= known.start_after, now)
        for path, last_seq in present.items()
        if path not in listed
    ]
    for file, written_at in zip(new, _written_at(known.root, new), strict=True):
        folders = _folders(file)
        values = {column: folders[column] for column in columns}
        is_change = file.last_seq > newest
        actions.append(AddAction(file.path, file.bytes, values, written_at or now, is_change, _statistics(file)))
    return actions


def _folders(file: manifest.Listed) -> dict[str, str | None]:
    """What the folders of a file say: the date, and tokens of the key."""
    pairs = [name.split("=", 1) for name in file.path.split("/")[1:-1]]
    return {column: None if value == _NULL else unquote(value) for column, value in pairs}


def _statistics(file: manifest.Listed) -> str:
    """By which readers skip files."""
    first, last = (_moment(time) for time in (file.first_published_at, file.last_published_at))
    return json.dumps(
        {
            "numRecords": file.message_count,
            "minValues": {"seq": file.first_seq, "published_at": first},
            "maxValues": {"seq": file.last_seq, "published_at": last},
            "nullCount": {"seq": 0, "published_at": 0},
        }
    )


def _present(table: DeltaTable) -> dict[str, int]:
    """The files of a table, each with its last seq."""
    import pyarrow

    found = pyarrow.table(table.get_add_actions(flatten=True)).select(["path", "max.seq"]).to_pylist()
    return {unquote(file["path"]): file["max.seq"] or 0 for file in found}


def _written_at(root: str, files: Sequence[manifest.Listed]) -> list[int | None]:
    """When each was written, in milliseconds since 1970."""
    system, folder = filesystem(root)
    found = system.get_file_info([f"{folder}/{file.path}" for file in files])
    return [None if info.mtime is None else int(info.mtime.timestamp() * 1000) for info in found]


def _once() -> CommitProperties:
    """A commit as the very next version of the table, or none: deltalake would put it after those of others."""
    from deltalake import CommitProperties

    return CommitProperties(max_commit_retries=0)


def _place(root: str) -> str:
    """A folder as deltalake names it."""
    return root.replace("s3a://", "s3://", 1).removeprefix("file:")


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@contextmanager
def _failing_clearly(root: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        reason = " ".join(_COLOUR.sub("", str(error)).replace("↳", "").split())
        raise Unavailable(
            f"the Delta table in {root} cannot be read or written: {reason}"[:500],
            "what is archived is safe; run it again, and the table will follow",
        ) from error
