"""Changes of tables as messages: keys and data, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from postbus.db.replication.pgoutput import UNCHANGED, Delete, Insert, Relation, Row, Truncate, Update
from postbus.sources.catalog import PublishedTable
from postbus.sources.formats import Format, Origin, Transaction, format_of
from postbus.sources.keys import KeyTemplate
from postbus.sources.rendering import RowWriter
from postbus.sources.settings import SourceSettings

# Of the bus itself, in case a publication has them: each message would make another.
_OWN: Final = "postbus_data"
_WITH_KEY: Final = ("d", "i")


@dataclass(slots=True)
class Messages:
    """Messages in their order, as two lists that go to Postgres as they are."""

    keys: list[bytes] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, key: bytes, data: bytes) -> None:
        self.keys.append(key)
        self.data.append(data)
        self.size += len(data)

    def extend(self, others: Messages) -> None:
        self.keys += others.keys
        self.data += others.data
        self.size += others.size

    def __len__(self) -> int:
        return len(self.keys)


class TableChanges:
    """Makes messages of the changes of one table, as long as its columns stay as they are."""

    def __init__(self, relation: Relation, settings: SourceSettings, origin: Origin) -> None:
        self.relation = relation
        self.writer = RowWriter(relation)
        self.keys = KeyTemplate(
            settings.key_template,
            database=origin.database,
            schema=relation.schema,
            table=relation.name,
            source=origin.source,
            places=self.writer.keys,
        )
        self.format: Format = format_of(settings.format, self.writer, origin, relation)

    def identity(self, row: Row) -> tuple[bytes, ...]:
        """What tells a row from others of its table."""
        return tuple(value if isinstance(value, bytes) else b"" for value in (row[place] for place in self.writer.keys))

    def has_other_key(self, old: Row, new: Row) -> bool:
        return any(old[place] != new[place] and new[place] is not UNCHANGED for place in self.writer.keys)


class Changes:
    """Makes messages of all tables of a source.

    Args:
        settings: The source.
        origin: How messages name it.
        primary_key: The primary key of a table, by its id, for those whose replica identity says no key.
        reselect: Fills in large values of a row that got another key, as they are now.
    """

    def __init__(
        self,
        settings: SourceSettings,
        origin: Origin,
        primary_key: Callable[[int], Sequence[str]],
        reselect: Callable[[Relation, Row], Row] = lambda _, row: row,
    ) -> None:
        self._settings = settings
        self._origin = origin
        self._primary_key = primary_key
        self._reselect = reselect
        self._tables: dict[int, TableChanges | None] = {}
        self._operations = frozenset(settings.operations)

    def learn(self, relation: Relation) -> TableChanges | None:
        """The columns of a table, which hold for the changes that follow."""
        if relation.schema == _OWN:
            self._tables[relation.oid] = None
            return None
        table = TableChanges(self.with_key(relation), self._settings, self._origin)
        self._tables[relation.oid] = table
        return table

    def table(self, relation: int) -> TableChanges | None:
        return self._tables[relation]

    def with_key(self, relation: Relation) -> Relation:
        """The relation with the columns marked that tell its rows apart. With the identity "full", all are."""
        if relation.identity in _WITH_KEY and any(column.is_key for column in relation.columns):
            return relation
        key = set(self._primary_key(relation.oid))
        columns = tuple(replace(column, is_key=column.name in key) for column in relation.columns)
        return replace(relation, columns=columns)

    def insert(self, transaction: Transaction, change: Insert, out: Messages) -> None:
        table = self._tables[change.relation]
        if table is None or "insert" not in self._operations:
            return
        transaction.count += 1
        key = table.keys.of_row(change.new, "insert")
        out.add(key, table.format.insert(transaction, change.new))

    def update(self, transaction: Transaction, change: Update, out: Messages) -> None:
        """An update; two messages if it changes the key, because they may belong to different partitions."""
        table = self._tables[change.relation]
        if table is None or "update" not in self._operations:
            return
        old, new = change.old, change.new
        if old is not None and not change.is_key:
            # The whole old row has the values that did not change.
            new = [before if now is UNCHANGED else now for before, now in zip(old, new, strict=True)]
        transaction.count += 1
        if old is not None and table.has_other_key(old, new):
            deleted = table.format.delete(transaction, old, is_key=change.is_key)
            out.add(table.keys.of_row(old, "delete"), deleted)
            transaction.count += 1
            if UNCHANGED in new:
                # Nobody could know them by the new key. What changes them later comes later.
                new = self._reselect(table.relation, new)
            out.add(table.keys.of_row(new, "insert"), table.format.insert(transaction, new))
            return
        known = None if change.is_key else old
        out.add(table.keys.of_row(new, "update"), table.format.update(transaction, known, new))

    def delete(self, transaction: Transaction, change: Delete, out: Messages) -> None:
        table = self._tables[change.relation]
        if table is None or "delete" not in self._operations:
            return
        transaction.count += 1
        data = table.format.delete(transaction, change.old, is_key=change.is_key)
        out.add(table.keys.of_row(change.old, "delete"), data)

    def truncate(self, transaction: Transaction, change: Truncate, out: Messages) -> None:
        for relation in change.relations:
            table = self._tables[relation]
            if table is None or "truncate" not in self._operations:
                continue
            transaction.count += 1
            out.add(table.keys.of_table("truncate"), table.format.truncate(transaction))


def truncates(settings: SourceSettings, origin: Origin, tables: Iterable[PublishedTable], position: int) -> Messages:
    """A truncate of each table, as if it had been at a position of the log."""
    messages = Messages()
    transaction = Transaction(position, datetime.now(UTC), 0)
    for table in tables:
        made = TableChanges(Relation(0, table.schema, table.name, "d", ()), settings, origin)
        transaction.count += 1
        messages.add(made.keys.of_table("truncate"), made.format.truncate(transaction))
    return messages
