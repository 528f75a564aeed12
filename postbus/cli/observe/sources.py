"""The sources: their states, how far they lag, and what is wrong with them."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from postbus.cli.observe import figures
from postbus.cli.observe.screens import LiveScreen
from postbus.cli.observe.table import Column, Table
from postbus.model.source import WELL, SourceInfo


def _style(row: SourceInfo) -> str:
    if row.state in WELL:
        return "green"
    return "yellow" if row.state in ("paused", "waiting_for_slot") else "bold red"


def _progress(row: SourceInfo) -> str:
    """How many tables are backfilled, and how many of the rows that are estimated."""
    tables = [table for table in row.found_tables if table.backfill != "none"]
    done = sum(table.backfill == "done" for table in tables)
    return f"{done}/{len(tables)}" if tables else ""


COLUMNS: tuple[Column[SourceInfo], ...] = (
    Column("SOURCE", 16, lambda row: row.name, lambda row: row.name, left=True, grows=20),
    Column("STATE", 16, lambda row: row.state, lambda row: row.state, left=True, style=_style),
    Column("STREAM", 14, lambda row: row.stream, lambda row: row.stream, left=True, grows=16, rank=1),
    Column("LAG", 9, lambda row: figures.size(row.lag_bytes), lambda row: row.lag_bytes or 0, descending=True),
    Column("BEHIND", 8, lambda row: "" if row.lag_seconds is None else f"{row.lag_seconds:.1f} s"),
    Column(
        "WAL HELD",
        9,
        lambda row: figures.size(row.wal_held_bytes),
        lambda row: row.wal_held_bytes or 0,
        descending=True,
    ),
    Column("CHG/S", 8, lambda row: figures.rate(row.changes_per_second), lambda row: row.changes_per_second or 0.0),
    Column("CHANGES", 11, lambda row: figures.count(row.change_count), lambda row: row.change_count, descending=True),
    Column("BACKFILL", 8, _progress, rank=2),
)


class SourcesScreen(LiveScreen):
    """All sources."""

    DEFAULT_CSS = "SourcesScreen #why { height: auto; max-height: 8; color: $text-muted; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("p", "pause", "Pause")]

    def compose_body(self) -> ComposeResult:
        empty = "no sources yet; add one: postbus source postgres add"
        yield Table(COLUMNS, lambda row: row.name, id="sources", sort=0, empty=empty)
        yield Static(id="why", markup=False)

    @property
    def sources(self) -> Table[SourceInfo]:
        return self.query_one("#sources", Table)

    async def look(self) -> None:
        self.sources.show(await self.feed.bus.sources.list_all())
        self.show_why()

    def show_why(self) -> None:
        """What is wrong with the selected source, and what to do about it."""
        row = self.sources.row
        said = "" if row is None else "\n".join(filter(None, (row.problem, row.remedy)))
        self.query_one("#why", Static).update(said)

    def where(self) -> str:
        return f"postbus  {len(self.sources.rows):,} sources  {self.program.shown_url}"

    def on_table_moved(self) -> None:
        self.show_why()

    def action_pause(self) -> None:
        row = self.sources.row
        if row is None:
            return
        sources, name = self.feed.bus.sources, row.name

        async def change() -> str:
            await (sources.resume(name) if row.state == "paused" else sources.pause(name))
            return f"{'resumed' if row.state == 'paused' else 'paused'} {name}"

        verb = "Resume" if row.state == "paused" else "Pause"
        self.confirm(f"{verb} source {name}?", change)
