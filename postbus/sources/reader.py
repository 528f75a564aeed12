"""Reads one source: takes it, prepares it, checks that its slot fits the position, and streams, until it is stopped."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack, suppress
from typing import Final
from uuid import UUID

from postbus.db.plain import PlainConnection
from postbus.db.replication.pgoutput import format_lsn
from postbus.db.replication.walsender import SlotGone, SlotInUse, System, Walsender, connection_parts
from postbus.db.session import KeptSession
from postbus.model.errors import Conflict, Error, Unavailable
from postbus.sources import catalog, target
from postbus.sources.backfilling import Backfill
from postbus.sources.changes import truncates
from postbus.sources.checks import check
from postbus.sources.formats import Origin
from postbus.sources.preparing import prepare, publish_tables, refuse
from postbus.sources.settings import SourceSettings, Stopped, shown_url
from postbus.sources.streaming import Streaming
from postbus.sources.target import Figures, Publisher

_log = logging.getLogger("postbus.source")
_RETRY_SECONDS: Final = 1.0
_MOST_RETRY_SECONDS: Final = 15.0
_STOPPED_SECONDS: Final = 10.0
_NOTE_SECONDS: Final = 1.0
# How often tables are looked for that are new and fit the patterns.
_TABLES_SECONDS: Final = 30.0


class _NotOurs(Exception):
    """The source is paused, gone, changed, or another reader's: end, and perhaps begin anew."""


class Reader:
    """Reads a source as long as it may.

    Args:
        url: The database of the bus.
        name: The source.
        holder: Names this reader among all.
    """

    def __init__(self, url: str, name: str, holder: UUID) -> None:
        self.name = name
        self._url = url
        self._holder = holder
        self._stop = threading.Event()
        self._known: SourceSettings | None = None
        self._figures = Figures("starting")
        self._failures = 0

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def run(self) -> None:
        """Read until it is stopped, or the source is not for this reader."""
        try:
            session = KeptSession.open(self._url)
        except Error as error:
            _log.warning("source %s waits for the bus: %s", self.name, error.message)
            return
        try:
            while not self._stop.is_set():
                settings = target.take(session, self.name, self._holder)
                if settings is None:
                    return
                self._attempt(session, settings)
        except _NotOurs:
            pass
        except Error as error:
            # Of the bus's Postgres: nobody else can be told.
            _log.warning("source %s is interrupted: %s", self.name, error.message)
        finally:
            with suppress(Error):
                target.release(session, self.name, self._holder)
            session.close()

    def _attempt(self, session: KeptSession, settings: SourceSettings) -> None:
        """Read once, until something fails; then wait before the next time."""
        self._known = settings
        try:
            self._read(session, settings)
            self._failures = 0
        except _NotOurs:
            self._failures = 0
        except Stopped as stopped:
            self._wait(session, Figures(stopped.state, stopped.message, stopped.remedy), _STOPPED_SECONDS)
        except (SlotInUse, SlotGone) as error:
            self._wait(session, Figures("waiting_for_slot", error.message), _RETRY_SECONDS)
        except Conflict as error:
            # Another reader has published: begin anew from where it is.
            self._wait(session, Figures("starting", error.message), _RETRY_SECONDS)
        except Unavailable as error:
            self._failures += 1
            seconds = min(_RETRY_SECONDS * 2 ** min(self._failures - 1, 5), _MOST_RETRY_SECONDS)
            self._wait(session, Figures("unreachable", error.message, error.hint), seconds)
        except Error as error:
            self._wait(session, Figures("refused", error.message, error.hint), _STOPPED_SECONDS)
        except Exception as error:
            # A fault of ours, of which no message may tell: it could have data in it.
            _log.exception("source %s has failed", self.name)
            self._wait(session, Figures("refused", f"an internal error: {type(error).__name__}"), _STOPPED_SECONDS)

    def _wait(self, session: KeptSession, figures: Figures, seconds: float) -> None:
        """Say what is wrong, and wait; less if the settings change meanwhile."""
        if (figures.state, figures.problem) != (self._figures.state, self._figures.problem):
            _log.warning("source %s is %s: %s", self.name, figures.state, figures.problem)
        self._figures = figures
        end = time.monotonic() + seconds
        known = self._known
        assert known is not None  # noqa: S101
        while not self._stop.is_set():
            version = target.note(session, known.id, self._holder, figures)
            if version is None:
                raise _NotOurs
            left = end - time.monotonic()
            if version != known.version or left <= 0:
                return
            self._stop.wait(min(_NOTE_SECONDS, left))

    def _read(self, session: KeptSession, settings: SourceSettings) -> None:
        self._note(session, settings, Figures("starting"))
        url = settings.url or self._url
        with ExitStack() as stack:
            database = stack.enter_context(catalog.open_source(url, settings.name))
            is_new = settings.epoch == 0
            if is_new:
                settings = self._begin(session, database, settings)
            position = target.position(session, settings.id, settings.epoch)
            if position is None:
                raise _NotOurs
            self._application = target.application(session, settings.name)
            walsender = stack.enter_context(Walsender(url, application=self._application))
            self._check_slot(session, database, walsender, settings, position)
            self._update_tables(session, database, settings)
            own = KeptSession.open(self._url)
            stack.callback(own.close)
            publisher = Publisher(own, settings)
            publisher.forget_staged()
            origin = _origin(database, settings, url)
            if settings.empties:
                messages = truncates(
                    settings, origin, catalog.published(database, settings.publication) or (), position
                )
                publisher.publish_empty(position, messages.keys, messages.data)
            backfill = Backfill(
                stack.enter_context(catalog.open_source(url, settings.name)),
                settings,
                origin,
                lambda: target.next_backfill(session, settings.id),
                is_fresh=is_new or target.is_fresh(session, settings.id, settings.epoch),
            )
            stack.callback(backfill.close)
            self._start(database, walsender, settings, position)
            streaming = Streaming(
                walsender,
                database,
                publisher,
                settings,
                origin,
                position,
                backfill,
                lambda figures: self._stream_note(session, database, settings, figures),
            )
            self._failures = 0
            self._tables_at = time.monotonic() + _TABLES_SECONDS
            streaming.run(self._stop.is_set)

    def _begin(self, session: KeptSession, database: PlainConnection, settings: SourceSettings) -> SourceSettings:
        """Make publication and slot."""
        begin_source(session, database, settings, self._url)
        found = target.find(session, settings.name)
        if found is None or found.epoch == 0:
            raise _NotOurs
        self._known = found
        return found

    def _start(self, database: PlainConnection, walsender: Walsender, settings: SourceSettings, position: int) -> None:
        try:
            walsender.start(settings.slot, position, settings.publication)
        except SlotInUse as error:
            slot = catalog.slot(database, settings.slot)
            if slot is not None and slot.active_pid is not None:
                # We have the lease, so another reader of this bus that still holds the slot is frozen, or cut off.
                ended = catalog.end_reader(database, slot.active_pid, self._application)
                who = catalog.who(database, slot.active_pid)
                raise SlotInUse(
                    f"slot {settings.slot} is read by {who}" + (", which is being ended" if ended else "")
                ) from error
            raise

    def _check_slot(
        self,
        session: KeptSession,
        database: PlainConnection,
        walsender: Walsender,
        settings: SourceSettings,
        position: int,
    ) -> None:
        """Stop where the slot does not fit the position: going on would silently leave something out."""
        system = walsender.identify()
        _check_system(system, walsender, settings, position)
        slot = catalog.slot(database, settings.slot)
        if slot is None:
            raise Stopped("slot_lost", f"the slot {settings.slot} does not exist any more", _restart(settings))
        if slot.is_lost:
            reason = slot.invalidation or "its log was removed"
            raise Stopped("slot_lost", f"the slot {settings.slot} is lost: {reason}", _restart(settings))
        assert slot.confirmed_lsn is not None  # noqa: S101
        if slot.confirmed_lsn > position:
            raise Stopped(
                "gap",
                f"the slot {settings.slot} is at {format_lsn(slot.confirmed_lsn)}, and the stream only has what came up to "
                f"{format_lsn(position)}: somebody has advanced the slot or made it again, or the bus was restored to an "
                "older state",
                _restart(settings),
            )
        if system.timeline != settings.timeline:
            target.note_timeline(session, settings.id, system.timeline)

    def _update_tables(self, session: KeptSession, database: PlainConnection, settings: SourceSettings) -> None:
        """Publish tables that are new and fit, and what the settings say of the others."""
        _, found, findings = check(database, settings, is_new=False)
        refuse(findings)
        if not settings.is_foreign_publication:
            publish_tables(database, settings, found)
        target.note_tables(session, settings, found)

    def _stream_note(
        self, session: KeptSession, database: PlainConnection, settings: SourceSettings, figures: Figures
    ) -> None:
        if time.monotonic() >= self._tables_at:
            self._tables_at = time.monotonic() + _TABLES_SECONDS
            names = {(table.schema, table.name) for table in catalog.tables(database, settings.tables)}
            listed = catalog.published(database, settings.publication) or ()
            if not settings.is_foreign_publication and names != {(table.schema, table.name) for table in listed}:
                self._update_tables(session, database, settings)
        self._note(session, settings, figures)

    def _note(self, session: KeptSession, settings: SourceSettings, figures: Figures) -> None:
        """Keep the source.

        Raises:
            _NotOurs: It is another's, paused, gone, or has other settings.
        """
        self._figures = figures
        if target.note(session, settings.id, self._holder, figures) != settings.version:
            raise _NotOurs


def begin_source(session: KeptSession, database: PlainConnection, settings: SourceSettings, bus_url: str) -> None:
    """Make publication and slot, and record from where the slot begins.

    Raises:
        Stopped: The database has to be changed first.
        Unavailable: A transaction has been open for long, or the database cannot be reached.
    """
    lsn = prepare(database, settings)
    with Walsender(settings.url or bus_url, application=f"postbus source {settings.name}") as walsender:
        system = walsender.identify()
    target.begin(session, settings.id, lsn, system, None if settings.url is None else shown_url(settings.url))


def _check_system(system: System, walsender: Walsender, settings: SourceSettings, position: int) -> None:
    where = format_lsn(position)
    if system.identifier != settings.system_identifier:
        raise Stopped(
            "diverged",
            f"the URL leads to another cluster ({system.identifier}) than the slot was made in ({settings.system_identifier})",
            f"give the URL of the former one, or: {_restart(settings)}",
        )
    is_behind = system.lsn < position
    if not is_behind and settings.timeline is not None and system.timeline != settings.timeline:
        switch = walsender.switch_of(system.timeline, settings.timeline)
        is_behind = switch is None or switch < position
    if is_behind:
        raise Stopped(
            "diverged",
            f"the source's log does not have what the stream has up to {where}: it was restored to an older state, or a standby "
            "was promoted that lacked the newest transactions",
            _restart(settings),
        )


def _restart(settings: SourceSettings) -> str:
    return f"postbus source postgres restart {settings.name}"


def _origin(database: PlainConnection, settings: SourceSettings, url: str) -> Origin:
    parts = connection_parts(url)
    return Origin(
        settings.name,
        catalog.server_facts(database).database,
        parts.get("host") or parts.get("hostaddr") or "localhost",
    )
