"""Reads a slot and publishes what comes, until it is stopped or something fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson

from postbus.db.plain import PlainConnection
from postbus.db.replication import pgoutput
from postbus.db.replication.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Relation,
    Truncate,
    Update,
)
from postbus.db.replication.walsender import Data, Keepalive, Walsender
from postbus.sources import catalog
from postbus.sources.backfilling import Backfill
from postbus.sources.changes import Changes, Messages
from postbus.sources.formats import Origin, Transaction
from postbus.sources.outbox import Outbox
from postbus.sources.pages import MARK
from postbus.sources.settings import SourceSettings
from postbus.sources.target import Figures, PageDone, Publisher

_ANNOTATIONS: Final = ("postbus:annotations", "sequin:transaction_annotations.set")
_IDLE_SECONDS: Final = 0.1
# Something is being published: look soon whether it is done.
_BUSY_SECONDS: Final = 0.002
_CONFIRM_SECONDS: Final = 1.0
_FIGURES_SECONDS: Final = 2.0


@dataclass(slots=True)
class Pace:
    """How long things wait. Tests are impatient."""

    # A confirmed position cannot be read again. So long after it was stored, a failover of the stream's Postgres should
    # have kept it.
    confirm_delay: float = 10.0
    # A position is stored for the log of others, too, or the slot would keep it all.
    idle_bytes: int = 16 * 1024 * 1024
    idle_seconds: float = 300.0


PACE: Final = Pace()


class Streaming:
    """One connection's life.

    Args:
        walsender: It has been started.
        database: Another connection to the source, for questions.
        publisher: Publishes to the stream.
        settings: The source.
        origin: How messages name it.
        position: All transactions that end up to here are published.
        backfill: Publishes existing rows.
        report: Called now and then, and at least every two seconds, with figures.
    """

    def __init__(
        self,
        walsender: Walsender,
        database: PlainConnection,
        publisher: Publisher,
        settings: SourceSettings,
        origin: Origin,
        position: int,
        backfill: Backfill,
        report: Callable[[Figures], None],
    ) -> None:
        self.outbox = Outbox(publisher, position, self._between)
        self._walsender = walsender
        self._database = database
        self._publisher = publisher
        self._settings = settings
        self._changes = Changes(
            settings,
            origin,
            lambda oid: catalog.primary_key(database, oid),
            lambda relation, row: catalog.reselect(database, relation, row),
        )
        self._backfill = backfill
        self._report = report
        self._messages = Messages()
        self._transaction: Transaction | None = None
        self._page: tuple[Messages, PageDone] | None = None
        # How far we have received, and how far the server is known to be without anything for us.
        self._received = position
        self._idle_to = position
        self._confirm_at = 0.0
        self._report_at = 0.0
        self._look_at = 0.0
        self._server_lsn = position
        self._held_bytes: int | None = None
        self._reported = (0, 0)
        self._reported_at = time.monotonic()
        self._rate: float | None = None

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Read and publish until it is stopped, which leaves nothing half done."""
        with self.outbox:
            while not is_stopped():
                self.turn()
            if self._transaction is None:
                self.outbox.flush()
            self._confirm()

    def turn(self) -> None:
        """Handle one message, or wait a moment for one."""
        received = self._walsender.receive(-1)
        if received is None:
            received = self._rest()
        if isinstance(received, Data):
            self._received = max(self._received, received.wal_end)
            self._take(received.content)
            self.outbox.poll(is_more_coming=True)
        elif isinstance(received, Keepalive):
            self._note_keepalive(received)
        self._between()

    def _rest(self) -> Data | Keepalive | None:
        """Nothing has come: do what waits for that, and wait for a message."""
        self.outbox.poll(is_more_coming=self._transaction is not None)
        if self._transaction is None:
            refused = self._backfill.step(is_publishing=self.outbox.is_publishing)
            if refused is not None:
                self.outbox.settle()
                self._publisher.note_page(refused)
        is_busy = self.outbox.is_publishing or self._backfill.is_busy
        return self._walsender.receive(_BUSY_SECONDS if is_busy else _IDLE_SECONDS)

    def _take(self, content: bytes) -> None:
        event = pgoutput.decode(content)
        transaction = self._transaction
        if isinstance(event, Begin):
            self._transaction = Transaction(event.commit_lsn, event.committed_at, event.xid)
        elif isinstance(event, Relation):
            self._changes.learn(event)
        elif transaction is None or event is None:
            return
        elif isinstance(event, Commit):
            self._close(transaction, event)
        elif isinstance(event, LogicalMessage):
            self._take_logical_message(transaction, event)
        else:
            self._take_change(transaction, event)

    def _take_change(
        self, transaction: Transaction, event: Insert | Update | Delete | Truncate | Begin | Relation
    ) -> None:
        messages = self._messages
        if isinstance(event, Insert):
            self._changes.insert(transaction, event, messages)
        elif isinstance(event, Update):
            self._changes.update(transaction, event, messages)
        elif isinstance(event, Delete):
            self._changes.delete(transaction, event, messages)
        elif isinstance(event, Truncate):
            self._changes.truncate(transaction, event, messages)
        if self._backfill.is_tracking:
            self._track(transaction, event)
        self.outbox.grow(messages)

    def _track(self, transaction: Transaction, event: object) -> None:
        """Remember which rows have changed, for the backfill."""
        recent = self._backfill.recent
        if isinstance(event, Truncate):
            for relation in event.relations:
                if (table := self._changes.table(relation)) is not None:
                    recent.note_truncate((table.relation.schema, table.relation.name), transaction.xid)
            return
        if not isinstance(event, Insert | Update | Delete) or (table := self._changes.table(event.relation)) is None:
            return
        name = (table.relation.schema, table.relation.name)
        if not isinstance(event, Insert) and event.old is not None:
            recent.note(name, table.identity(event.old), transaction.xid)
        if isinstance(event, Update) and UNCHANGED in event.new and (event.old is None or event.is_key):
            values = dict(zip(table.writer.names, event.new, strict=True))
            recent.note_partial(name, table.identity(event.new), transaction.xid, values)
        elif not isinstance(event, Delete):
            recent.note(name, table.identity(event.new), transaction.xid)
        if recent.is_too_many:
            self._backfill.begin_anew()

    def _take_logical_message(self, transaction: Transaction, message: LogicalMessage) -> None:
        if message.prefix == MARK and self._backfill.is_mark(message.content):
            self._page = self._backfill.messages(transaction)
        elif message.prefix in _ANNOTATIONS:
            try:
                annotations = orjson.dumps(orjson.loads(message.content))
            except orjson.JSONDecodeError:
                return
            # Another object: what is made of one is kept as long as it is the same.
            self._transaction = Transaction(
                transaction.commit_lsn, transaction.committed_at, transaction.xid, annotations, transaction.count
            )

    def _close(self, transaction: Transaction, commit: Commit) -> None:
        self._transaction = None
        messages, self._messages = self._messages, Messages()
        self._idle_to = max(self._idle_to, commit.end_lsn)
        if self._page is not None:
            (made, page), self._page = self._page, None
            self.outbox.close_page(made, commit.end_lsn, transaction.committed_at, page)
        elif messages.keys or self.outbox.has_large:
            self.outbox.close(messages, commit.end_lsn, transaction.committed_at)

    def _note_keepalive(self, keepalive: Keepalive) -> None:
        self._received = max(self._received, keepalive.wal_end)
        if self._transaction is None:
            # All that was committed before it has been sent.
            self._idle_to = max(self._idle_to, keepalive.wal_end)
        if keepalive.wants_answer:
            self._confirm()

    def _between(self) -> None:
        """What has to go on, also while a publish takes long."""
        now = time.monotonic()
        if now >= self._confirm_at:
            self._confirm()
            self._move_if_idle(now)
        if now >= self._report_at:
            self._report_at = now + _FIGURES_SECONDS / 2
            self._report(self._figures(now))

    def _confirm(self) -> None:
        self._confirm_at = time.monotonic() + _CONFIRM_SECONDS
        self._walsender.confirm(self._received, self.outbox.confirmable(PACE.confirm_delay))

    def _move_if_idle(self, now: float) -> None:
        """Store how far the log has come without anything for us, so that the slot does not keep it."""
        outbox = self.outbox
        ahead = self._idle_to - outbox.stored
        is_due = ahead >= PACE.idle_bytes or (ahead > 0 and now - outbox.stored_at >= PACE.idle_seconds)
        if is_due and self._transaction is None and outbox.is_empty:
            outbox.move(self._idle_to)

    def _figures(self, now: float) -> Figures:
        if now >= self._look_at:
            self._look_at = now + _FIGURES_SECONDS
            slot = catalog.slot(self._database, self._settings.slot)
            if slot is not None and slot.held_bytes is not None:
                self._held_bytes = slot.held_bytes
                self._server_lsn = catalog.current_lsn(self._database)
        changes, transactions = self.outbox.change_count, self.outbox.transaction_count
        before_changes, before_transactions = self._reported
        seconds = max(now - self._reported_at, 0.001)
        self._reported, self._reported_at = (changes, transactions), now
        published_to = self._idle_to if self.outbox.is_empty and self._transaction is None else self.outbox.stored
        lag = max(0, max(self._server_lsn, self._received) - published_to)
        return Figures(
            "backfilling" if self._backfill.is_busy else "streaming",
            lag_bytes=lag,
            lag_seconds=self._lag_seconds(),
            wal_held_bytes=self._held_bytes,
            changes=changes - before_changes,
            transactions=transactions - before_transactions,
            changes_per_second=round((changes - before_changes) / seconds, 1),
        )

    def _lag_seconds(self) -> float:
        waiting = self.outbox.lag_seconds()
        if self._transaction is not None:
            waiting = max(waiting, catalog.age(self._transaction.committed_at))
        return waiting
