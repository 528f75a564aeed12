"""Pieces that pages are made of: tables, figures, times, badges, messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, Literal, TypeVar

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import written_duration
from postbus.model.wording import age, count

Row = TypeVar("Row")
Tone = Literal["", "good", "warn", "bad", "soft"]
# Counts stop here.
_MOST_COUNTED: Final = 10_000


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        title: Its heading.
        shown: What it shows of a row.
        is_number: It is aligned to the right.
        is_extra: It is left out where the screen is narrow.
    """

    title: str
    shown: Callable[[Row], object]
    is_number: bool = False
    is_extra: bool = False


def table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    id: str,
    empty: object = "",
    row_id: Callable[[Row], str] | None = None,
) -> Html:
    """A table, or what to say when it would be empty."""
    lines = []
    for row in rows:
        cells = [tag("td", column.shown(row), class_=_class_of(column)) for column in columns]
        lines.append(tag("tr", *cells, id=None if row_id is None else row_id(row)))
    if not lines:
        return tag("div", empty, class_="empty", id=id)
    head = tag("tr", *(tag("th", column.title, class_=_class_of(column), scope="col") for column in columns))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="scroll", id=id, tabindex="0")


def _class_of(column: Column[Any]) -> str | None:
    return " ".join(filter(None, ("num" if column.is_number else "", "extra" if column.is_extra else ""))) or None


def tiles(*pairs: tuple[str, object] | None, id: str) -> Html:
    """Figures side by side."""
    shown = [tag("div", tag("dt", pair[0]), tag("dd", pair[1])) for pair in pairs if pair is not None]
    return tag("dl", *shown, class_="tiles", id=id)


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Names and values, one below the other."""
    return tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")


def settings(pairs: Iterable[tuple[str, object]]) -> Html:
    """Names and values in columns."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts wide")


def badge(text: object, tone: Tone = "") -> Html:
    return tag("span", text, class_=f"badge {tone}".strip())


def link(text: object, to: str, **attributes: object) -> Html:
    return tag("a", text, href=to, **attributes)


def code(text: object) -> Html:
    return tag("code", text)


def heading(text: object, *more: object) -> Html:
    """The heading of a section, with what stands beside it."""
    return tag("div", tag("h2", text), *more, class_="heading")


def card(*children: object, id: str | None = None, live: bool = False, class_: str = "card") -> Html:
    """A box. If it is live, the page fetches it again every other second."""
    return tag("section", *children, class_=class_, id=id, data_live="" if live else None)


def ago(moment: datetime | None, *, empty: str = "–") -> Html:
    """How long ago, with the whole time for whoever points at it."""
    if moment is None:
        return tag("span", empty, class_="soft")
    return tag("time", age(moment, now()), datetime=moment.isoformat(), title=exactly(moment))


def until(moment: datetime | None, *, empty: str = "–") -> Html:
    """In how long."""
    if moment is None:
        return tag("span", empty, class_="soft")
    left = moment - now()
    words = "now" if left < timedelta(seconds=1) else "in " + age(now() - left, now())
    return tag("time", words, datetime=moment.isoformat(), title=exactly(moment))


def exactly(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def moment(time: datetime | None, *, empty: str = "–") -> Html:
    """A whole time."""
    if time is None:
        return tag("span", empty, class_="soft")
    return tag("time", exactly(time), datetime=time.isoformat())


def duration(length: float | timedelta | None, *, empty: str = "–") -> object:
    return tag("span", empty, class_="soft") if length is None else written_duration(length)


def number(value: float | None, tone: Tone = "") -> Html:
    """A number; 0 is dim, so that the others stand out."""
    shown = count(value)
    if isinstance(value, int) and value >= _MOST_COUNTED and tone == "bad":
        shown = f"{value:,}+" if value == _MOST_COUNTED else f"{value:,}"
    return tag("span", shown, class_="soft" if not value else tone or None)


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def value_of(value: object) -> object:
    """A setting as it is shown."""
    if value is None or value == [] or value == ():
        return tag("span", "–", class_="soft")
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, timedelta):
        return written_duration(value)
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(value_of(each)) for each in value)
    return str(value)
