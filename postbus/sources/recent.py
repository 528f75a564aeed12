"""Which rows have changed lately, so that a page of the backfill does not publish an older state of them.

A page is read at a snapshot, and published where its mark comes in the log. A row that was changed by a transaction which the
snapshot does not see must not be published from the page if that change was published already: it is newer. It may have been
published before the page was read, because a commit is sent before other sessions see its effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
        self._truncated: dict[TableName, list[int]] = {}
        self._count = 0

    def note(self, table: TableName, row: Identity, xid: int) -> None:
        rows = self._rows.setdefault(table, {})
        self._count += row not in rows
        rows[row] = xid

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
        self._truncated = {
            table: left
            for table, xids in self._truncated.items()
            if (left := [xid for xid in xids if not snapshot.sees(xid)])
        }
        self._count = sum(map(len, self._rows.values()))

    def clear(self) -> None:
        self._rows.clear()
        self._truncated.clear()
        self._count = 0
