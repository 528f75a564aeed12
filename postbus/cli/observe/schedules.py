"""Recurring schedules: when they publish next, when they did last, and what is wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from postbus.cli.observe import figures
from postbus.cli.observe.screens import LiveScreen
from postbus.cli.observe.table import Column, Table
from postbus.model.amounts import written_duration
from postbus.model.schedule import ScheduleInfo


def _state(row: ScheduleInfo) -> str:
    return "problem" if row.problem else "paused" if row.paused else "active"


def _style(row: ScheduleInfo) -> str:
    return {"active": "green", "paused": "yellow", "problem": "bold red"}[_state(row)]


def _rule(row: ScheduleInfo) -> str:
    return row.cron if row.cron is not None else "" if row.every is None else f"every {written_duration(row.every)}"


def _next(row: ScheduleInfo) -> str:
    if not row.next_at:
        return ""
    now = datetime.now(UTC)
    return "now" if row.next_at[0] <= now else "in " + figures.age(now - (row.next_at[0] - now), now)


def _last(row: ScheduleInfo) -> str:
    return figures.age(row.last_runs[0].published_at, datetime.now(UTC)) if row.last_runs else "never"


COLUMNS: tuple[Column[ScheduleInfo], ...] = (
    Column("STREAM", 14, lambda row: row.stream, lambda row: row.stream, left=True, grows=16),
    Column("SCHEDULE", 16, lambda row: row.name, lambda row: row.name, left=True, grows=20),
    Column("STATE", 8, _state, _state, left=True, style=_style),
    Column("RULE", 16, _rule, _rule, left=True, grows=20),
    Column("ZONE", 16, lambda row: row.time_zone if row.cron else "", left=True, rank=2),
    Column("NEXT", 9, _next, lambda row: row.next_at[0].timestamp() if row.next_at else float("inf")),
    Column("LAST RUN", 9, _last),
    Column("PRIORITY", 8, lambda row: str(row.priority), lambda row: row.priority, descending=True, rank=1),
)


class SchedulesScreen(LiveScreen):
    """The recurring schedules of all streams."""

    DEFAULT_CSS = "SchedulesScreen #times { height: auto; max-height: 8; color: $text-muted; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("p", "pause", "Pause"), Binding("r", "run", "Run now")]

    def compose_body(self) -> ComposeResult:
        empty = "no recurring schedules yet; add one: postbus schedule add"
        yield Table(COLUMNS, lambda row: f"{row.stream}/{row.name}", id="schedules", sort=0, empty=empty)
        yield Static(id="times", markup=False)

    @property
    def schedules(self) -> Table[ScheduleInfo]:
        return self.query_one("#schedules", Table)

    async def look(self) -> None:
        self.schedules.show(await self.feed.bus.schedules.list_all())
        self.show_times()

    def show_times(self) -> None:
        """The next times of the selected schedule, or why it has none."""
        row = self.schedules.row
        said = ""
        if row is not None:
            times = ", ".join(f"{each:%Y-%m-%d %H:%M:%S}" for each in row.next_at)
            said = row.problem or (f"next, in UTC: {times}" if times else "it has no times while it is paused")
        self.query_one("#times", Static).update(said)

    def where(self) -> str:
        return f"postbus  {len(self.schedules.rows):,} schedules  {self.program.shown_url}"

    def on_table_moved(self) -> None:
        self.show_times()

    def action_pause(self) -> None:
        row = self.schedules.row
        if row is None:
            return
        schedules, stream, name, is_paused = self.feed.bus.schedules, row.stream, row.name, row.paused

        async def change() -> str:
            await (schedules.resume(stream, name) if is_paused else schedules.pause(stream, name))
            return f"{'resumed' if is_paused else 'paused'} {name}"

        self.confirm(f"{'Resume' if is_paused else 'Pause'} schedule {name} of {stream}?", change)

    def action_run(self) -> None:
        row = self.schedules.row
        if row is None:
            return
        schedules, stream, name = self.feed.bus.schedules, row.stream, row.name

        async def change() -> str:
            return f"published as seq {await schedules.run_now(stream, name):,}"

        self.confirm(f"Publish the message of schedule {name} of {stream} now?", change)
