"""A consumer: its progress, and messages as it sees them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import ClassVar, Final
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from postbus.cli import output
from postbus.cli.observe import consumer_actions, figures
from postbus.cli.observe.detail import DetailScreen
from postbus.cli.observe.screens import LiveScreen, in_background
from postbus.cli.observe.table import Column, Table
from postbus.model.consumer import Peeked, State
from postbus.model.errors import NotFound
from postbus.model.overview import ConsumerOverview
from postbus.model.push import PushInfo

_STATES: Final[tuple[State | None, ...]] = (None, "available", "delivered", "waiting", "dead")
_STYLES: Final = {"available": "", "delivered": "green", "waiting": "yellow", "dead": "bold red"}

COLUMNS: tuple[Column[Peeked], ...] = (
    Column("SEQ", 9, lambda row: str(row.seq)),
    Column("STATE", 9, lambda row: row.state, left=True, style=lambda row: _STYLES[row.state]),
    Column("TRY", 3, lambda row: str(row.attempts)),
    Column("UNTIL", 8, lambda row: f"{row.until.astimezone():%H:%M:%S}" if row.until else "-"),
    Column("KEY", 16, lambda row: row.key or "-", left=True, grows=20, style=lambda _: "cyan"),
    Column("DATA", 12, lambda row: output.cell(row.data), left=True, grows=200),
    Column("REASON", 14, lambda row: row.reason or "", left=True, grows=40),
)


class ConsumerScreen(LiveScreen):
    """The first messages that are not finished."""

    DEFAULT_CSS = "ConsumerScreen #standing { height: 2; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "state", "State"),
        Binding("n", "older", "Pages", key_display="n/b"),
        Binding("b", "newer", "Page before", show=False),
        Binding("p", "pause", "Pause"),
        Binding("a", "settle(True)", "Ack"),
        Binding("x", "settle(False)", "Nack"),
        Binding("g", "seek", "Seek"),
        Binding("d", "redrive(False)", "Redrive"),
        Binding("D", "redrive(True)", "Redrive all", show=False),
    ]

    def __init__(self, stream: str, consumer: str) -> None:
        super().__init__()
        self._stream, self._consumer = stream, consumer
        self._state: State | None = None
        self._pages = [0]
        self._standing: ConsumerOverview | None = None
        self._push: PushInfo | None = None

    def compose_body(self) -> ComposeResult:
        yield Static(id="standing", markup=False)
        yield Table(COLUMNS, lambda row: (row.seq, row.state), id="messages", empty="no messages")

    @property
    def table(self) -> Table[Peeked]:
        return self.query_one("#messages", Table)

    async def look(self) -> None:
        found = await self.feed.consumers(self._stream)
        self._standing = next((each for each in found if each.name == self._consumer), None)
        if self._standing is None:
            self.query_one("#standing", Static).update("it no longer exists" if self.feed.problem is None else "")
            return
        bound = self.feed.bus.consumer(self._stream, self._consumer)
        size = max(10, self.table.size.height - 1)
        self.table.show(await bound.peek(state=self._state, after_seq=self._pages[-1], max_messages=size))
        with suppress(NotFound):
            self._push = None
            self._push = await bound.push.info()
        self.query_one("#standing", Static).update(_described(self._standing))

    def where(self) -> str:
        state = f"{self._state} messages" if self._state else "all messages that are not finished"
        paused = "  PAUSED" if self._standing is not None and self._standing.paused else ""
        page = f", page {len(self._pages)}" if len(self._pages) > 1 else ""
        return f"{self._stream} › {self._consumer}{paused}{_pushed(self._push)}  {state}{page}"

    def on_table_chosen(self) -> None:
        if self.table.row is not None:
            self.app.push_screen(DetailScreen(self._stream, self.table.row))

    def on_table_past_end(self, event: Table.PastEnd) -> None:
        self.action_older() if event.direction > 0 else self.action_newer()

    def action_state(self) -> None:
        """Only messages of the next state."""
        self._state = _STATES[(_STATES.index(self._state) + 1) % len(_STATES)]
        self._pages = [0]
        self._look_now()

    def action_older(self) -> None:
        if len(self.table.rows) >= max(10, self.table.size.height - 1):
            self._pages.append(self.table.rows[-1].seq)
            self._look_now()

    def action_newer(self) -> None:
        if len(self._pages) > 1:
            self._pages.pop()
            self._look_now()

    def _look_now(self) -> None:
        in_background(self, self.look_again, "look")

    def action_pause(self) -> None:
        if self._standing is not None:
            consumer_actions.pause_or_resume(self, self._stream, self._consumer, paused=self._standing.paused)

    def action_seek(self) -> None:
        if self._standing is not None:
            consumer_actions.seek(self, self._stream, self._consumer, in_flight=self._standing.in_flight)

    def action_settle(self, ack: bool) -> None:
        row = self.table.row
        if row is None or row.ack_id is None:
            self.notify("only a delivered message can be acked or nacked")
            return
        consumer_actions.settle(self, self._stream, self._consumer, seq=row.seq, ack_id=row.ack_id, ack=ack)

    def action_redrive(self, everything: bool) -> None:
        row = self.table.row
        dead = 0 if self._standing is None else self._standing.dead
        if everything and dead:
            consumer_actions.redrive(self, self._stream, self._consumer, seq=None, dead=dead)
        elif not everything and row is not None and row.state == "dead":
            consumer_actions.redrive(self, self._stream, self._consumer, seq=row.seq, dead=dead)
        else:
            self.notify("only a dead letter can be redriven")


def _described(standing: ConsumerOverview) -> str:
    now = datetime.now(UTC)
    first = (
        f"backlog {figures.about(standing.backlog, is_exact=standing.backlog_is_exact)}, "
        f"the oldest {figures.age(standing.oldest_unread_at, now)}   "
        f"in flight {figures.count(standing.in_flight)}, the longest {figures.age(standing.oldest_in_flight_at, now)}, "
        f"{figures.count(standing.redelivering)} again"
    )
    second = f"waiting {figures.count(standing.waiting)}   dead {figures.count(standing.dead)}   order {standing.order}"
    if len(standing.by_priority) > 1:
        levels = ", ".join(f"{level}: {figures.count(count)}" for level, count in standing.by_priority.items())
        second += f"   by priority {levels}"
    return f"{first}\n{second}"


def _pushed(endpoint: PushInfo | None) -> str:
    """Where its messages are sent, and why not."""
    if endpoint is None:
        return ""
    host = urlsplit(endpoint.url).netloc
    return f"  → {host}" if endpoint.state == "active" else f"  → {host} {endpoint.state.upper()}: {endpoint.reason}"
