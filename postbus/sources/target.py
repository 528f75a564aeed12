"""The stream that a source feeds: where messages and position are committed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from postbus.db.arrays import TextArray
from postbus.db.replication.pgoutput import format_lsn, parse_lsn
from postbus.db.replication.walsender import System
from postbus.db.session import KeptSession
from postbus.sources.catalog import Table
from postbus.sources.settings import COLUMNS, SourceSettings

LEASE: Final = timedelta(seconds=5)
_FREE: Final = """
select s.name
from postbus_data.source as s
join postbus_data.source_status as u on u.source_id = s.id
where not s.paused
    and (u.holder is null or u.held_at not between clock_timestamp() - $1::interval and clock_timestamp() + $1::interval)
order by s.name
"""
_FIND: Final = f"select {COLUMNS} from postbus_data.source as s where s.name = $1"  # noqa: S608
_TAKE: Final = f"select {COLUMNS} from postbus_data.take_source($1, $2, $3) where id is not null"  # noqa: S608
_PUBLISH: Final = "select postbus_data.publish_source($1, $2, $3::pg_lsn, $4::pg_lsn, $5, $6, $7, $8::uuid, $9)"
_STAGE: Final = "select postbus_data.spark_stage($1, $2::uuid, $3, $4, 0, $5, $6, $7, null, null, null)"
_NOTE: Final = "select postbus_data.note_source($1, $2::uuid, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_BACKFILLED: Final = "select postbus_data.note_backfill($1, $2, $3, $4, $5, $6, $7, $8)"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a reader says about its source from time to time.

    Attributes:
        changes, transactions: Published since it last said so.
    """

    state: str
    problem: str | None = None
    remedy: str | None = None
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    wal_held_bytes: int | None = None
    changes: int = 0
    transactions: int = 0
    changes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A table whose existing rows are being published, and behind which key the next page begins."""

    schema: str
    name: str
    after_key: list[str] | None


@dataclass(frozen=True, slots=True)
class PageDone:
    """That a page of a table was published."""

    progress: Progress
    to_key: list[str] | None
    row_count: int
    is_last: bool
    problem: str | None = None


def free(session: KeptSession) -> list[str]:
    """The sources that nobody reads."""
    return [name for (name,) in session.rows(_FREE, (LEASE,))]


def find(session: KeptSession, name: str) -> SourceSettings | None:
    rows = session.rows(_FIND, (name,))
    return SourceSettings.of_row(rows[0]) if rows else None


def take(session: KeptSession, name: str, holder: UUID) -> SourceSettings | None:
    """Take a source; None if another reader has it."""
    rows = session.rows(_TAKE, (name, str(holder), LEASE))
    return SourceSettings.of_row(rows[0]) if rows else None


def release(session: KeptSession, name: str, holder: UUID) -> None:
    session.rows("select postbus_data.release_source($1, $2::uuid)", (name, str(holder)))


def note(session: KeptSession, source: int, holder: UUID, figures: Figures) -> int | None:
    """Keep a source, and store figures. Returns the version of its settings; None if it is ours no more."""
    version: int | None = session.value(
        _NOTE,
        (
            source,
            str(holder),
            figures.state,
            figures.problem,
            figures.remedy,
            figures.lag_bytes,
            figures.lag_seconds,
            figures.wal_held_bytes,
            figures.changes,
            figures.transactions,
            figures.changes_per_second,
        ),
    )
    return version


def begin(session: KeptSession, source: int, lsn: int, system: System, shown: str | None) -> int | None:
    """Record a new slot. Returns its epoch; None if another reader was faster."""
    epoch: int | None = session.value(
        "select postbus_data.begin_source($1, $2::pg_lsn, $3, $4, $5)",
        (source, format_lsn(lsn), system.identifier, system.timeline, shown),
    )
    return epoch


def note_timeline(session: KeptSession, source: int, timeline: int) -> None:
    session.rows("select postbus_data.note_timeline($1, $2)", (source, timeline))


def application(session: KeptSession, name: str) -> str:
    """By which name readers of this bus appear at the source: a copy of the bus elsewhere has another."""
    return str(
        session.value(
            "select 'postbus source ' || left($1, 30) || ' of ' || substr(md5(c.system_identifier || current_database()), 1, 8) "
            "from pg_control_system() as c",
            (name,),
        )
    )


def position(session: KeptSession, source: int, epoch: int) -> int | None:
    """All transactions that end up to here are published."""
    found = session.value("select postbus_data.source_position_of($1, $2)::text", (source, epoch))
    return None if found is None else parse_lsn(found)


def is_fresh(session: KeptSession, source: int, epoch: int) -> bool:
    """Whether nothing of a slot has been published."""
    return bool(
        session.value(
            "select not exists (select from postbus_data.source_position as p "
            "where p.source_id = $1 and p.epoch = $2 and p.committed_at is not null)",
            (source, epoch),
        )
    )


def note_tables(session: KeptSession, settings: SourceSettings, found: Sequence[Table]) -> None:
    """Record which tables there are."""
    session.rows(
        "select postbus_data.note_source_tables($1, $2, $3, $4::text[]::bigint[], $5)",
        (
            settings.id,
            _texts([table.schema for table in found]),
            _texts([table.name for table in found]),
            _texts([str(table.estimate) for table in found]),
            settings.backfill,
        ),
    )


def next_backfill(session: KeptSession, source: int) -> Progress | None:
    rows = session.rows("select table_schema, table_name, after_key from postbus_data.next_backfill($1)", (source,))
    return Progress(*rows[0]) if rows else None


class Publisher:
    """Publishes for one source by a connection of its own."""

    def __init__(self, session: KeptSession, settings: SourceSettings) -> None:
        self._session = session
        self._settings = settings
        self._stream: str = session.value(
            "select t.name from postbus_data.source as s join postbus_data.stream as t on t.id = s.stream_id where s.id = $1",
            (settings.id,),
        )

    def publish(
        self,
        after: int,
        to: int,
        committed_at: datetime | None,
        keys: Sequence[bytes],
        data: Sequence[bytes],
        *,
        page: PageDone | None = None,
    ) -> None:
        """Publish messages, and move the position, all or nothing.

        Raises:
            Conflict: The position is elsewhere: another reader has published.
        """
        call = self._call(after, to, committed_at, _array(keys), _array(data), None, 0)
        if page is None:
            self._session.rows(*call)
            return
        with self._session.transaction():
            self._session.rows(*call)
            self.note_page(page)

    def publish_empty(self, position: int, keys: Sequence[bytes], data: Sequence[bytes]) -> None:
        """Publish that all tables are empty, once. The position stays.

        Raises:
            Conflict: The position is elsewhere: another reader has published.
        """
        with self._session.transaction():
            self._session.rows(*self._call(position, position, None, _array(keys), _array(data), None, 0))
            self._session.rows("select postbus_data.end_emptying($1)", (self._settings.id,))

    def note_page(self, page: PageDone) -> None:
        """Record the progress of a backfill."""
        progress = page.progress
        self._session.rows(
            _BACKFILLED,
            (
                self._settings.id,
                progress.schema,
                progress.name,
                None if progress.after_key is None else _texts(progress.after_key),
                None if page.to_key is None else _texts(page.to_key),
                page.row_count,
                page.is_last,
                page.problem,
            ),
        )

    def stage(self, attempt: UUID, chunk: int, keys: Sequence[bytes], data: Sequence[bytes]) -> None:
        """Store a part of a large transaction beside the stream."""
        writer = f"{self._stream}/source-{self._settings.id}"
        self._session.rows(_STAGE, (self._stream, str(attempt), chunk, writer, len(keys), _array(keys), _array(data)))

    def publish_staged(self, after: int, to: int, committed_at: datetime | None, attempt: UUID, count: int) -> None:
        """Publish all parts of a large transaction.

        Raises:
            Conflict: The position is elsewhere.
            Unavailable: Parts are gone, because the bus's Postgres has crashed.
        """
        self._session.rows(*self._call(after, to, committed_at, None, None, str(attempt), count))

    def forget_staged(self) -> None:
        """Remove what a reader before this one has staged."""
        self._session.rows(
            "delete from postbus_data.spark_staging as s where s.writer = $1",
            (f"{self._stream}/source-{self._settings.id}",),
        )

    def _call(
        self,
        after: int,
        to: int,
        committed_at: datetime | None,
        keys: TextArray | None,
        data: TextArray | None,
        attempt: str | None,
        count: int,
    ) -> tuple[str, tuple[object, ...]]:
        place = (self._settings.id, self._settings.epoch, format_lsn(after), format_lsn(to), committed_at)
        return _PUBLISH, (*place, keys, data, attempt, count)


def _array(values: Sequence[bytes]) -> TextArray:
    return TextArray(values)


def _texts(values: Sequence[str]) -> TextArray:
    return TextArray([value.encode() for value in values])
