"""The first screen: all streams, and below them the consumers of the one under the cursor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from postbus.cli.observe import consumer_actions, figures
from postbus.cli.observe.consumer import ConsumerScreen
from postbus.cli.observe.feed import StreamRow
from postbus.cli.observe.messages import MessagesScreen
from postbus.cli.observe.schedules import SchedulesScreen
from postbus.cli.observe.screens import LiveScreen, in_background
from postbus.cli.observe.sources import SourcesScreen
from postbus.cli.observe.table import Column, Table
from postbus.model.overview import ConsumerOverview

_TROUBLES: Final = ("", "behind", "dead", "FULL")
_TROUBLE_STYLES: Final = {"": "dim", "behind": "yellow", "dead": "bold red", "FULL": "bold red"}


def _now() -> datetime:
    return datetime.now(UTC)


STREAM_COLUMNS: tuple[Column[StreamRow], ...] = (
    Column("STREAM", 18, lambda row: row.name, lambda row: row.name, left=True, grows=30),
    Column(
        "STATE",
        6,
        lambda row: row.trouble(_now()) or ("queue" if row.overview.until_acked else ""),
        lambda row: (_TROUBLES.index(row.trouble(_now())), row.backlog, row.dead),
        left=True,
        descending=True,
        style=lambda row: _TROUBLE_STYLES[row.trouble(_now())],
    ),
    Column(
        "BACKLOG",
        8,
        lambda row: figures.about(row.backlog, is_exact=row.worst is None or row.worst.backlog_is_exact),
        lambda row: row.backlog,
        descending=True,
        style=lambda row: "yellow" if row.backlog else "",
    ),
    Column(
        "DEAD",
        6,
        lambda row: figures.count(row.dead),
        lambda row: row.dead,
        descending=True,
        style=lambda row: "bold red" if row.dead else "",
    ),
    Column("MSG/S", 8, lambda row: figures.rate(row.rate), lambda row: row.rate or 0.0, descending=True),
    Column("TREND", 12, drawn=lambda row, room: figures.sparkline(row.rates, room), grows=48, style=lambda _: "green"),
    Column(
        "MESSAGES",
        9,
        lambda row: figures.count(row.message_estimate),
        lambda row: row.message_estimate,
        descending=True,
    ),
    Column("SIZE", 9, lambda row: figures.size(row.bytes), lambda row: row.bytes, rank=1, descending=True),
    Column(
        "LAST SEQ",
        12,
        lambda row: f"{row.overview.last_seq:,}",
        lambda row: row.overview.last_seq,
        rank=3,
        descending=True,
    ),
    Column(
        "CONSUMERS", 9, lambda row: str(row.overview.consumer_count), lambda row: row.overview.consumer_count, rank=2
    ),
)


def _lag_style(row: ConsumerOverview) -> str:
    return "yellow" if row.backlog else ""


CONSUMER_COLUMNS: tuple[Column[ConsumerOverview], ...] = (
    Column("CONSUMER", 16, lambda row: row.name, lambda row: row.name, left=True, grows=24),
    Column("", 6, lambda row: "paused" if row.paused else "", left=True, style=lambda _: "bold yellow"),
    Column(
        "BACKLOG",
        8,
        lambda row: figures.about(row.backlog, is_exact=row.backlog_is_exact),
        lambda row: row.backlog,
        descending=True,
        style=_lag_style,
    ),
    Column(
        "LAG",
        8,
        lambda row: figures.about(row.lag_estimate, is_exact=row.backlog_is_exact),
        lambda row: row.lag_estimate,
        rank=1,
        descending=True,
    ),
    Column("OLDEST", 7, lambda row: figures.age(row.oldest_unread_at, _now()), style=_lag_style),
    Column("IN FLIGHT", 9, lambda row: figures.count(row.in_flight), lambda row: row.in_flight, descending=True),
    Column("REDELIV", 7, lambda row: figures.count(row.redelivering), lambda row: row.redelivering, descending=True),
    Column("WAITING", 7, lambda row: figures.count(row.waiting), lambda row: row.waiting, descending=True),
    Column(
        "DEAD",
        6,
        lambda row: figures.count(row.dead),
        lambda row: row.dead,
        descending=True,
        style=lambda row: "bold red" if row.dead else "",
    ),
    Column("LONGEST", 8, lambda row: figures.age(row.oldest_in_flight_at, _now()), rank=2),
    Column("ORDER", 9, lambda row: row.order, left=True, rank=3),
)


# Streams are sorted by this column at first.
_STATE: Final = next(place for place, column in enumerate(STREAM_COLUMNS) if column.title == "STATE")


class OverviewScreen(LiveScreen):
    """Streams and consumers."""

    DEFAULT_CSS = """
    OverviewScreen #streams { height: 3fr; }
    OverviewScreen #of { height: 1; color: $text-muted; padding: 0 1; }
    OverviewScreen #consumers { height: 2fr; }
    OverviewScreen #search { display: none; height: 1; padding: 0 1; background: $panel; }
    OverviewScreen #search, OverviewScreen #search:focus { border: none; }
    OverviewScreen #search.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", "Clear", show=False),
        Binding("q", "app.quit", "Quit"),
        Binding("tab", "app.focus_next", "Streams/consumers", show=False),
        Binding("slash", "search", "Search"),
        Binding("p", "pause", "Pause"),
        Binding("g", "seek", "Seek"),
        Binding("d", "redrive", "Redrive"),
        Binding("w", "sources", "Sources", show=False),
        Binding("c", "schedules", "Schedules", show=False),
    ]

    def __init__(self, stream: str | None = None) -> None:
        super().__init__()
        self._wanted = stream
        self._search = ""

    def compose_body(self) -> ComposeResult:
        empty = "no streams yet; create one: postbus stream add orders"
        yield Table(STREAM_COLUMNS, lambda row: row.name, id="streams", sort=_STATE, empty=empty)
        yield Static(id="of", markup=False)
        yield Table(CONSUMER_COLUMNS, lambda row: row.name, id="consumers", sort=0, empty="no consumers")
        yield Input(id="search", placeholder="part of a name; escape clears", select_on_focus=False)

    @property
    def streams(self) -> Table[StreamRow]:
        return self.query_one("#streams", Table)

    @property
    def consumers(self) -> Table[ConsumerOverview]:
        return self.query_one("#consumers", Table)

    async def look(self) -> None:
        self.show_streams()
        await self.show_consumers()

    def show_streams(self) -> None:
        self.streams.show([row for row in self.feed.streams.values() if self._search in row.name])
        if self._wanted is not None and self.feed.streams:
            self.streams.move_to(self._wanted)
            self._wanted = None

    async def show_consumers(self) -> None:
        stream = self.streams.row
        found = [] if stream is None else await self.feed.consumers(stream.name)
        if stream is self.streams.row:  # The cursor has not moved meanwhile.
            self.query_one("#of", Static).update("" if stream is None else f"consumers of {stream.name}")
            self.consumers.show(found)

    def where(self) -> str:
        feed = self.feed
        shown, total = len(self.streams.rows), len(feed.streams)
        streams = f"{total:,} streams" if shown == total else f"{shown:,} of {total:,} streams"
        return f"postbus  {streams}  {figures.rate(feed.total_rate)} msg/s  {self.program.shown_url}"

    def on_table_moved(self, event: Table.Moved) -> None:
        if event.table is self.streams:
            in_background(self, self.look_at_consumers, "consumers")

    async def look_at_consumers(self) -> None:
        await self.show_consumers()
        self.show_top()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        stream, consumer = self.streams.row, self.consumers.row
        if stream is None:
            return
        if event.table is self.streams:
            self.app.push_screen(MessagesScreen(stream.name))
        elif consumer is not None:
            self.app.push_screen(ConsumerScreen(stream.name, consumer.name))

    def action_search(self) -> None:
        field = self.query_one("#search", Input)
        field.add_class("-shown")
        field.focus()

    def action_clear(self) -> None:
        field = self.query_one("#search", Input)
        field.value = ""
        field.remove_class("-shown")
        self.streams.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search = event.value.strip()
        self.show_streams()
        self.show_top()

    def on_input_submitted(self) -> None:
        self.streams.focus()

    def action_pause(self) -> None:
        if (chosen := self._chosen()) is not None:
            stream, consumer = chosen
            consumer_actions.pause_or_resume(self, stream, consumer.name, paused=consumer.paused)

    def action_seek(self) -> None:
        if (chosen := self._chosen()) is not None:
            stream, consumer = chosen
            consumer_actions.seek(self, stream, consumer.name, in_flight=consumer.in_flight)

    def action_redrive(self) -> None:
        if (chosen := self._chosen()) is not None:
            stream, consumer = chosen
            if not consumer.dead:
                self.notify(f"{consumer.name} has no dead letters", markup=False)
                return
            consumer_actions.redrive(self, stream, consumer.name, seq=None, dead=consumer.dead)

    def action_sources(self) -> None:
        self.app.push_screen(SourcesScreen())

    def action_schedules(self) -> None:
        self.app.push_screen(SchedulesScreen())

    def _chosen(self) -> tuple[str, ConsumerOverview] | None:
        stream, consumer = self.streams.row, self.consumers.row
        if stream is None or consumer is None:
            self.notify("no consumer is selected")
            return None
        return stream.name, consumer
