"""Publishes existing rows while changes go on: page by page, each where its mark comes in the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from postbus.db.plain import PlainConnection
from postbus.db.replication.pgoutput import Row
from postbus.model.errors import Error, Unavailable
from postbus.sources import catalog
from postbus.sources.changes import Messages, TableChanges
from postbus.sources.formats import Origin, Transaction
from postbus.sources.pages import Page, PageReader, Unpublishable
from postbus.sources.recent import RecentChanges
from postbus.sources.settings import SourceSettings
from postbus.sources.target import PageDone, Progress

_LOOK_SECONDS: Final = 1.0
_WAIT_SECONDS: Final = 0.2


class Backfill:
    """The backfill of one source.

    Args:
        database: A connection to the source, for a thread of its own.
        settings: The source.
        origin: How messages name it.
        next_progress: The table whose turn it is.
        is_fresh: Nothing of this slot has been published before.
    """

    def __init__(
        self,
        database: PlainConnection,
        settings: SourceSettings,
        origin: Origin,
        next_progress: Callable[[], Progress | None],
        *,
        is_fresh: bool,
    ) -> None:
        self.recent = RecentChanges()
        self.is_tracking = False
        self._settings = settings
        self._origin = origin
        self._pages = PageReader(database, settings)
        self._next = next_progress
        # The changes of a slot that was just made are all seen by this reader.
        self._is_fresh = is_fresh
        self._may_begin = False
        self._waits_for: str | None = None
        # Changes each time that everything is forgotten: a page of before is worth nothing then.
        self._generation = 0
        self._page_of = 0
        self._page: Page | None = None
        # What follows the page that was last given to be published.
        self._following: Progress | None = None
        self._refused: PageDone | None = None
        self._thread = ThreadPoolExecutor(1, "postbus source backfill")
        self._future: Future[None] | None = None
        self._look_at = 0.0
        if self._next() is not None:
            self._track()

    @property
    def is_busy(self) -> bool:
        """Whether there are rows to publish."""
        return self.is_tracking

    def step(self, *, is_publishing: bool) -> PageDone | None:
        """Go on, without waiting. Returns a page that cannot be published.

        Args:
            is_publishing: The page before may not be stored yet, so only this object knows where the next one begins.
        """
        if self._future is not None:
            if self._future.done():
                self._finish()
            return self._take_refused()
        if self._page is not None or time.monotonic() < self._look_at:
            return None
        progress, following = self._next(), self._following
        self._following = None
        if following is not None and progress is not None and _is_same_table(progress, following):
            progress = following
        elif is_publishing:
            return None
        if progress is None:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            self._end()
            return None
        if not self.is_tracking:
            self._track()
        self._future = self._thread.submit(self._read, progress, self._generation)
        return None

    def is_mark(self, content: bytes) -> bool:
        """Whether a mark of the log is that of the page at hand."""
        page = self._page
        return page is not None and page.mark.encode() == content and self._page_of == self._generation

    def messages(self, transaction: Transaction) -> tuple[Messages, PageDone]:
        """The messages of the page at hand, whose mark is in this transaction."""
        page = self._page
        assert page is not None  # noqa: S101
        self._page = None
        table = TableChanges(page.relation, self._settings, self._origin)
        name = (page.relation.schema, page.relation.name)
        made = Messages()
        if self.recent.may_publish_table(name, page.snapshot):
            for row in page.rows:
                published: Row | None = row
                identity = table.identity(row)
                if not self.recent.may_publish(name, identity, page.snapshot):
                    published = self.recent.completed(name, identity, table.writer.names, row)
                if published is not None:
                    transaction.count += 1
                    made.add(table.keys.of_row(row, "read"), table.format.insert(transaction, published, "read"))
        self.recent.forget(page.snapshot)
        if not page.is_last:
            self._following = replace(page.progress, after_key=page.to_key)
        return made, PageDone(page.progress, page.to_key, len(page.rows), page.is_last)

    def begin_anew(self) -> None:
        """Forget changes that are too many to remember, and read the page at hand again once all sessions see them."""
        self.recent.clear()
        self._is_fresh = False
        self._generation += 1
        self._page = None
        self._following = None
        self._track()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _read(self, progress: Progress, generation: int) -> None:
        if not self._may_begin and not self._is_everything_seen():
            time.sleep(_WAIT_SECONDS)
            return
        page = self._pages.read(progress)
        # Known before its mark can come.
        self._page, self._page_of = page, generation
        self._pages.mark(page)

    def _is_everything_seen(self) -> bool:
        """Whether each page from now on sees what was published before this reader began to remember changes."""
        if self._waits_for is None:
            self._waits_for = self._pages.sees_all_before()
        self._may_begin = self._pages.has_ended_before(self._waits_for)
        return self._may_begin

    def _finish(self) -> None:
        assert self._future is not None  # noqa: S101
        future, self._future = self._future, None
        if self._page_of != self._generation:
            self._page = None
        try:
            future.result()
        except Unavailable:
            self._page = None
            raise
        except Error as error:
            self._page = None
            if catalog.is_passing(error):
                return
            progress = self._next()
            if progress is not None:
                hint = f" ({error.hint})" if isinstance(error, Unpublishable) and error.hint else ""
                self._refused = PageDone(progress, None, 0, False, f"{error.message}{hint}")

    def _take_refused(self) -> PageDone | None:
        refused, self._refused = self._refused, None
        return refused

    def _track(self) -> None:
        self.is_tracking = True
        self._waits_for = None
        self._may_begin = self._is_fresh

    def _end(self) -> None:
        self.is_tracking = False
        self._is_fresh = False
        self.recent.clear()


def _is_same_table(one: Progress, other: Progress) -> bool:
    return (one.schema, one.name) == (other.schema, other.name)
