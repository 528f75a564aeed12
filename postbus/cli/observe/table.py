"""A table that draws only the lines on the screen, so that a thousand rows cost no more than twenty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column.

    Attributes:
        title: What stands above it.
        width: How many characters it has.
        text: What stands in it.
        order: What rows are sorted by; None for a column by which they are not.
        left: Aligned to the left.
        grows: Takes up to so many characters more of what room is left.
        drawn: What stands in it, by its width; instead of text.
        rank: On a narrow screen those with the highest rank are left out first; 0 is always there.
        descending: Sorted from the highest to the lowest at first.
        style: How its text is drawn, by the row.
    """

    title: str
    width: int
    text: Callable[[Row], str] = str
    order: Callable[[Row], Any] | None = None
    left: bool = False
    grows: int = 0
    drawn: Callable[[Row, int], str] | None = None
    rank: int = 0
    descending: bool = False
    style: Callable[[Row], str] | None = None


class Table(ScrollView, Generic[Row], can_focus=True):
    """Rows under a fixed header, with a cursor that stays on its row when they are sorted again."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--head", "table--cursor", "table--row"}
    DEFAULT_CSS = """
    Table { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    Table > .table--head { color: $text-muted; text-style: bold; background: $panel; }
    Table > .table--row { color: $foreground; }
    Table > .table--cursor { background: $surface-lighten-2; }
    Table:focus > .table--cursor { background: $primary; color: $text; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000000)", "First", show=False),
        Binding("end", "move(1000000000)", "Last", show=False),
        Binding("enter", "choose", "Open", key_display="⏎"),
        Binding("s", "sort", "Sort"),
        Binding("S", "reverse", "Reverse", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, table: Table[Any]) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> Table[Any]:
            return self.table

    class Chosen(Moved):
        """Enter was pressed on a row."""

    class PastEnd(Moved):
        """The user tried to move past the last row, or before the first."""

        def __init__(self, table: Table[Any], direction: int) -> None:
            super().__init__(table)
            self.direction = direction

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        key: Callable[[Row], Any],
        *,
        id: str | None = None,
        sort: int | None = None,
        empty: str = "nothing here",
    ) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.empty = empty
        self.sort_column = sort
        self.descending = sort is not None and columns[sort].descending
        self._key = key
        self._rows: list[Row] = []
        self._at = 0
        self._layout: list[tuple[Column[Row], int]] = []

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self._at] if self._rows else None

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows instead. The cursor stays on its row, if that still exists."""
        before = None if self.row is None else self._key(self.row)
        self._rows = self._sorted(rows)
        places = (place for place, row in enumerate(self._rows) if self._key(row) == before)
        self._at = next(places, max(0, min(self._at, len(self._rows) - 1)))
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        self._keep_in_sight(self._at)
        self.refresh()
        if before != (None if self.row is None else self._key(self.row)):
            self.post_message(self.Moved(self))

    def move_to(self, key: Any) -> None:
        """Put the cursor on a row, if it is there."""
        for place, row in enumerate(self._rows):
            if self._key(row) == key:
                self._move(place)

    def action_move(self, by: int) -> None:
        place = self._at + by
        if abs(by) == 1 and not 0 <= place < len(self._rows):
            self.post_message(self.PastEnd(self, by))
        self._move(place)

    def action_page(self, direction: int) -> None:
        place = self._at
        target = place + direction * max(1, self.size.height - 2)
        edge = len(self._rows) - 1 if direction > 0 else 0
        if place == edge:
            self.post_message(self.PastEnd(self, direction))
        self._move(target)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether an action is possible: tables without a sort column cannot be sorted."""
        return action not in ("sort", "reverse") or self.sort_column is not None

    def action_choose(self) -> None:
        if self._rows:
            self.post_message(self.Chosen(self))

    def action_sort(self) -> None:
        """Sort by the next column that is on the screen."""
        shown = [self.columns.index(column) for column, _ in self._layout if column.order is not None]
        if not shown:
            return
        later = [place for place in shown if self.sort_column is not None and place > self.sort_column]
        self.sort_column = later[0] if later else shown[0]
        self.descending = self.columns[self.sort_column].descending
        self.show(self._rows)

    def action_reverse(self) -> None:
        self.descending = not self.descending
        self.show(self._rows)

    def on_click(self, event: Click) -> None:
        if event.y == 0:
            return
        place = self.scroll_offset.y + event.y - 1
        if 0 <= place < len(self._rows):
            self._move(place)
            if event.chain > 1:
                self.action_choose()

    def on_resize(self, event: Resize) -> None:
        self._layout = self._laid_out(event.size.width)
        self.virtual_size = Size(event.size.width, len(self._rows) + 1)
        self._keep_in_sight(self._at)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._head(width)
        place = self.scroll_offset.y + y - 1
        if not self._rows and y == 1:
            return _strip([Segment(f" {self.empty}", self.get_component_rich_style("table--head"))], width)
        if place >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        is_cursor = place == self._at
        style = self.get_component_rich_style("table--cursor" if is_cursor else "table--row")
        return _strip(self._cells(self._rows[place], style, plain=is_cursor and self.has_focus), width, style)

    def _cells(self, row: Row, style: Style, *, plain: bool) -> list[Segment]:
        segments = []
        for column, width in self._layout:
            own = Style.null() if plain or column.style is None else Style.parse(column.style(row))
            text = column.text(row) if column.drawn is None else column.drawn(row, width)
            segments.append(Segment(_fitted(text, width, left=column.left) + " ", style + own))
        return segments

    def _head(self, width: int) -> Strip:
        style = self.get_component_rich_style("table--head")
        segments = []
        for column, room in self._layout:
            is_sorted = self.sort_column is not None and column is self.columns[self.sort_column]
            mark = ("▼" if self.descending else "▲") if is_sorted else ""
            title = column.title + mark if column.left else mark + column.title
            segments.append(Segment(_fitted(title, room, left=column.left) + " ", style))
        return _strip(segments, width, style)

    def _laid_out(self, width: int) -> list[tuple[Column[Row], int]]:
        """Which columns there is room for, and how wide they are."""
        shown = list(self.columns)
        # One character is the scrollbar's.
        while sum(column.width + 1 for column in shown) > width - 1:
            highest = max(column.rank for column in shown)
            if highest == 0:
                break
            shown = [column for column in shown if column.rank != highest]
        spare = max(0, width - 1 - sum(column.width + 1 for column in shown))
        laid_out = []
        for place, column in enumerate(shown):
            growing = sum(each.grows > 0 for each in shown[place:])
            more = min(column.grows, spare // growing) if column.grows else 0
            spare -= more
            laid_out.append((column, column.width + more))
        return laid_out

    def _sorted(self, rows: Sequence[Row]) -> list[Row]:
        order = None if self.sort_column is None else self.columns[self.sort_column].order
        if order is None:
            return list(rows)
        known = [row for row in rows if order(row) is not None]
        unknown = [row for row in rows if order(row) is None]
        # By name first, so that equal rows keep their places.
        known.sort(key=self._key)
        return [*sorted(known, key=order, reverse=self.descending), *unknown]

    def _move(self, place: int) -> None:
        if not self._rows:
            return
        place = min(max(place, 0), len(self._rows) - 1)
        if place != self._at:
            self._at = place
            self.post_message(self.Moved(self))
        self._keep_in_sight(place)
        self.refresh()

    def _keep_in_sight(self, place: int) -> None:
        top, lines = self.scroll_offset.y, max(1, self.size.height - 1)
        if place < top:
            self.scroll_to(y=place, animate=False)
        elif place >= top + lines:
            self.scroll_to(y=place - lines + 1, animate=False)


def _fitted(text: str, width: int, *, left: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    text = text.replace("\n", " ").replace("\t", " ")
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else text[:width]
    blank = " " * (width - cell_len(text))
    return text + blank if left else blank + text


def _strip(segments: list[Segment], width: int, style: Style | None = None) -> Strip:
    return Strip(segments).adjust_cell_length(width, style)
