"""The table of `postbus observe`, with many rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from textual.app import App, ComposeResult

from postbus.cli.observe.table import Column, Table

pytestmark = pytest.mark.newest_server


@dataclass(frozen=True)
class Row:
    name: str
    number: int


class Tables(App[None]):
    """A table of a thousand rows that counts how often a cell is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def compose(self) -> ComposeResult:
        columns: list[Column[Row]] = [
            Column("NAME", 10, self.name_of, lambda row: row.name, left=True),
            Column("NUMBER", 8, lambda row: str(row.number), lambda row: row.number, descending=True),
            Column("NOTE", 60, lambda row: "a note", rank=1),
        ]
        yield Table(columns, lambda row: row.name, sort=0)

    def name_of(self, row: Row) -> str:
        self.asked += 1
        return row.name

    @property
    def table(self) -> Table[Row]:
        return self.query_one(Table)


ROWS = [Row(f"row-{number:04d}", number * 7919 % 1000) for number in range(1000)]


async def test_only_the_lines_on_the_screen_are_drawn() -> None:
    app = Tables()
    async with app.run_test(size=(100, 24)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        app.asked = 0
        app.table.show(ROWS)
        await pilot.pause()
        assert 0 < app.asked <= 2 * 24


async def test_the_cursor_stays_on_its_row_when_rows_are_sorted_or_change() -> None:
    app = Tables()
    async with app.run_test(size=(100, 24)) as pilot:
        app.table.show(ROWS)
        await pilot.press("end")
        assert app.table.row == ROWS[-1]
        await pilot.press("home", "pagedown", "down")
        chosen = app.table.row
        assert chosen is not None
        await pilot.press("s")
        assert app.table.row == chosen
        assert [row.number for row in app.table.rows[:2]] == [999, 998]
        app.table.show([row for row in ROWS if row.number % 2 == chosen.number % 2])
        assert app.table.row == chosen
        app.table.show([])
        assert app.table.row is None


async def test_columns_that_do_not_fit_are_left_out_by_their_rank() -> None:
    for width, expected in ((100, True), (60, False)):
        app = Tables()
        async with app.run_test(size=(width, 10)) as pilot:
            app.table.show(ROWS)
            await pilot.pause()
            assert ("NOTE" in app.table.render_line(0).text) is expected
            assert "row-0000" in app.table.render_line(1).text
