"""The messages of a stream: live, or a page of older ones."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from postbus.cli import output
from postbus.cli.observe.detail import DetailScreen
from postbus.cli.observe.dialogs import Ask
from postbus.cli.observe.screens import LiveScreen, in_background
from postbus.cli.observe.table import Column, Table
from postbus.model.message import Message

COLUMNS: tuple[Column[Message], ...] = (
    Column("SEQ", 10, lambda row: str(row.seq)),
    Column(
        "PUBLISHED", 12, lambda row: f"{row.published_at.astimezone():%H:%M:%S.%f}"[:12] if row.published_at else ""
    ),
    Column("KEY", 20, lambda row: row.key or "-", left=True, grows=20, style=lambda _: "cyan"),
    Column("DATA", 20, lambda row: output.cell(row.data), left=True, grows=200),
    Column("PART", 4, lambda row: str(row.partition), rank=1),
)


class MessagesScreen(LiveScreen):
    """The newest messages first. While the cursor is at the top of the first page, new ones appear."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter", "Filter keys"),
        Binding("n", "older", "Older"),
        Binding("b", "newer", "Newer"),
        Binding("l", "live", "Live"),
    ]

    def __init__(self, stream: str) -> None:
        super().__init__()
        self._stream = stream
        self._pattern: str | None = None
        # Where the pages before this one began; the last of them is this page. None is the end of the stream.
        self._pages: list[int | None] = [None]
        # What the first page was asked for: how far the stream was then, and how many messages fit.
        self._seen = (-1, 0)
        self._asked: tuple[int | None, str | None, int] | None = None

    def compose_body(self) -> ComposeResult:
        yield Table(COLUMNS, lambda row: row.seq, id="messages", empty="no messages")

    @property
    def table(self) -> Table[Message]:
        return self.query_one("#messages", Table)

    @property
    def is_live(self) -> bool:
        return len(self._pages) == 1

    async def look(self) -> None:
        row = self.feed.streams.get(self._stream)
        now = (-1 if row is None else row.overview.last_seq, self._page_size)
        if self.is_live and (now != self._seen or not self.table.rows):
            self._seen = now
            await self.show_page()

    @property
    def _page_size(self) -> int:
        return max(10, self.table.size.height - 1)

    async def show_page(self) -> None:
        asked = self._asked = (self._pages[-1], self._pattern, self._page_size)
        to_seq, pattern, size = asked
        page = await self.feed.bus.read(
            self._stream, to_seq=to_seq, key_pattern=pattern, max_messages=size, backwards=True
        )
        if asked != self._asked:
            return  # Something else was asked for meanwhile.
        was_on_top = self.table.row is None or self.table.row is self.table.rows[0]
        self.table.show(page.messages)
        if page.messages and was_on_top and self.is_live:
            self.table.move_to(page.messages[0].seq)

    def where(self) -> str:
        state = "live" if self.is_live else f"page {len(self._pages)}"
        pattern = "" if self._pattern is None else f"  keys {self._pattern}"
        return f"{self._stream}  messages, {state}{pattern}"

    def on_table_chosen(self) -> None:
        if self.table.row is not None:
            self.app.push_screen(DetailScreen(self._stream, self.table.row))

    def on_table_past_end(self, event: Table.PastEnd) -> None:
        if event.direction > 0:
            self.action_older()
        elif not self.is_live:
            self.action_newer()

    def action_older(self) -> None:
        rows = self.table.rows
        if rows and (rows[-1].seq or 0) > 1:
            self._pages.append((rows[-1].seq or 1) - 1)
            self._turn()

    def action_newer(self) -> None:
        if not self.is_live:
            self._pages.pop()
            self._turn()

    def action_live(self) -> None:
        self._pages = [None]
        self._turn()

    def _turn(self) -> None:
        async def turn() -> None:
            await self.show_page()
            if self.table.rows:
                self.table.move_to(self.table.rows[0].seq)
            self.show_top()

        in_background(self, turn, "look")

    def action_filter(self) -> None:
        def asked(pattern: str | None) -> None:
            if pattern is not None:
                self._pattern = pattern or None
                self.action_live()

        hint = "* is one token, > one or more at the end; empty shows all"
        self.app.push_screen(Ask("Only keys that match", self._pattern or "", hint), asked)
