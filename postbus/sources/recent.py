"""Which rows have changed lately, so that a page of the backfill does not publish an older state of them.

A page is read at a snapshot, and published where its mark comes in the log. A row that was changed by a transaction which the
snapshot does not see must not be published from the page if that change was published already: it is newer. It may have been
published before the page was read, because a commit is sent before other sessions see its effects.

A change may lack large values that it did not change. Then the stream has them from nowhere if the row of the page is left out;
so the change is published once more, with these values from the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from postbus.db.replication.pgoutput import UNCHANGED, Row, Value

# With more keys than this, tracking begins anew rather than to take more memory.
MOST_KEYS: Final = 200_000
_WRAP: Final = 1 << 32
TableName = tuple[str, str]
Identity = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which transactions a statement sees: those below xmin, and below xmax those that are not in progress."""

    xmin: int
    xmax: int
    in_progress: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """From the text of a pg_snapshot."""
        low, high, listed = text.split(":")
        return cls(int(low), int(high), frozenset(map(int, filter(None, listed.split(",")))))

    def sees(self, xid: int) -> bool:
        """Whether it sees a transaction, by its id of 32 bits."""
        # Transactions of the log are near the snapshot.
        whole = self.xmax + (xid - self.xmax + _WRAP // 2) % _WRAP - _WRAP // 2
        return whole < self.xmin or (whole < self.xmax and whole not in self.in_progress)


class RecentChanges:
    """Remembers which transaction last changed each row, as long as a backfill may read an older state of it."""

    def __init__(self) -> None:
        self._rows: dict[TableName, dict[Identity, int]] = {}
        # What changes said that lacked large values, by the names of columns.
        self._partial: dict[tuple[TableName, Identity], dict[str, Value]] = {}
        self._truncated: dict[TableName, list[int]] = {}
        self._count = 0

    def note(self, table: TableName, row: Identity, xid: int) -> None:
        """A change that has said all of its row, or deleted it."""
        rows = self._rows.setdefault(table, {})
        self._count += row not in rows
        rows[row] = xid
        if self._partial:
            self._partial.pop((table, row), None)

    def note_partial(self, table: TableName, row: Identity, xid: int, values: dict[str, Value]) -> None:
        """An update that lacked large values."""
        place = (table, row)
        rows = self._rows.setdefault(table, {})
        known = self._partial.get(place)
        if row in rows and known is None:
            # They were published by a change of before.
            rows[row] = xid
            return
        self._count += row not in rows
        rows[row] = xid
        self._partial[place] = {
            name: (known or {}).get(name, value) if value is UNCHANGED else value for name, value in values.items()
        }

    def completed(self, table: TableName, row: Identity, names: Sequence[str], values: Row) -> Row | None:
        """A row of a page as the last change left it, if that lacked large values; None if the stream has them all."""
        partial = self._partial.get((table, row))
        if partial is None:
            return None
        return [
            before if (now := partial.get(name, before)) is UNCHANGED else now
            for name, before in zip(names, values, strict=True)
        ]

    def note_truncate(self, table: TableName, xid: int) -> None:
        self._truncated.setdefault(table, []).append(xid)

    @property
    def is_too_many(self) -> bool:
        return self._count > MOST_KEYS

    def may_publish(self, table: TableName, row: Identity, snapshot: Snapshot) -> bool:
        """Whether no newer state of a row than that of the snapshot has been published."""
        xid = self._rows.get(table, {}).get(row)
        return xid is None or snapshot.sees(xid)

    def may_publish_table(self, table: TableName, snapshot: Snapshot) -> bool:
        """Whether the table was not emptied since the snapshot."""
        return all(snapshot.sees(xid) for xid in self._truncated.get(table, ()))

    def forget(self, snapshot: Snapshot) -> None:
        """Forget what this snapshot sees: younger ones see it too."""
        for rows in self._rows.values():
            for row in [row for row, xid in rows.items() if snapshot.sees(xid)]:
                del rows[row]
        self._partial = {place: values for place, values in self._partial.items() if place[1] in self._rows[place[0]]}
        self._truncated = {
            table: left
            for table, xids in self._truncated.items()
            if (left := [xid for xid in xids if not snapshot.sees(xid)])
        }
        self._count = sum(map(len, self._rows.values()))

    def clear(self) -> None:
        self._rows.clear()
        self._partial.clear()
        self._truncated.clear()
        self._count = 0
