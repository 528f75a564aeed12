"""Charts as SVG without script: shapes stretch with the page, words around them do not.

Beside each chart stands the same as a table, and each bucket tells its values to whoever points at it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from postbus.html.markup import Html, join, tag

_WIDTH: Final = 1000.0
_HEIGHT: Final = 200.0
_TICKS: Final = 4
_LABELS: Final = 4
# So many colours can be told apart.
MOST_SERIES: Final = 6

Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """A name and a value for each place; None where there is none."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of a chart, from the bottom to the top, and where lines are drawn; by powers of ten if they are far apart."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool

    def height(self, value: float) -> float:
        """How high a value is, from 0 at the bottom to 1."""
        if self.is_log:
            value = max(value, self.low)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(values: Sequence[float]) -> Axis:
    """From 0 to a round number above all values."""
    most = max(values, default=0.0) or 1.0
    raw = most / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    if step < 1 and all(value == int(value) for value in values):
        step = 1.0
    count = math.ceil(most / step)
    return Axis(0.0, count * step, tuple(place * step for place in range(count + 1)), False)


def logarithmic(values: Sequence[float]) -> Axis:
    """From a power of ten below all values to one above."""
    found = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    high = max(high, low + 1)
    step = max(1, round((high - low) / _TICKS))
    return Axis(10.0**low, 10.0**high, tuple(10.0**power for power in range(low, high + 1, step)), True)


def columns(title: str, values: Sequence[float], places: Sequence[str], *, format: Format, unit: str) -> Html:
    """A column for each place."""
    axis = linear(values)
    width = _WIDTH / max(1, len(values))
    gap = min(2.0, width * 0.15)
    shapes = []
    for place, value in enumerate(values):
        height = axis.height(value) * _HEIGHT
        if value:
            shapes.append(
                _shape("rect", x=place * width + gap / 2, y=_HEIGHT - height, width=width - gap, height=height)
            )
    series = [Series(unit, values)]
    return _figure(title, series, places, axis, Html("".join(shapes)), format=format, unit=unit, kind="columns")


def lines(
    title: str, series: Sequence[Series], places: Sequence[str], *, format: Format, unit: str, log: bool = False
) -> Html:
    """A line for each series, broken where it has no value. Those beyond MOST_SERIES are in the table only."""
    values = [value for each in series for value in each.values if value is not None]
    axis = logarithmic(values) if log else linear(values)
    shapes = [_line(each, axis, number) for number, each in enumerate(series[:MOST_SERIES], 1)]
    return _figure(title, series, places, axis, join(*shapes), format=format, unit=unit, kind="lines")


def _line(series: Series, axis: Axis, number: int) -> Html:
    """A path through the middles of places; a value alone is a short stroke."""
    step = _WIDTH / max(1, len(series.values))
    parts: list[str] = []
    pen_is_down = False
    for place, value in enumerate(series.values):
        if value is None:
            pen_is_down = False
            continue
        x, y = (place + 0.5) * step, _HEIGHT * (1 - axis.height(value))
        is_alone = not pen_is_down and (place + 1 == len(series.values) or series.values[place + 1] is None)
        if is_alone:
            parts.append(f"M{x - step * 0.4:.1f} {y:.1f}H{x + step * 0.4:.1f}")
        else:
            parts.append(f"{'L' if pen_is_down else 'M'}{x:.1f} {y:.1f}")
        pen_is_down = True
    return tag("path", d="".join(parts), class_=f"line s{number}")


def _shape(name: str, **attributes: float) -> Html:
    return tag(name, **{key: f"{value:.1f}" for key, value in attributes.items()})


def _figure(
    title: str,
    series: Sequence[Series],
    places: Sequence[str],
    axis: Axis,
    shapes: Html,
    *,
    format: Format,
    unit: str,
    kind: str,
) -> Html:
    grid = [_shape("line", x1=0, x2=_WIDTH, y1=y, y2=y) for y in (_HEIGHT * (1 - axis.height(t)) for t in axis.ticks)]
    svg = tag(
        "svg",
        tag("title", title),
        tag("g", *grid, class_="grid"),
        tag("g", shapes, class_=kind),
        tag("g", *_pointers(series[:MOST_SERIES], places, format), class_="pointers"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}, {unit}. The same as a table below.",
    )
    heights = [tag("span", format(tick), style=f"bottom:{axis.height(tick) * 100:.1f}%") for tick in axis.ticks]
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), " ", tag("span", unit, class_="unit")),
        _legend(series) if len(series) > 1 else None,
        tag("div", tag("div", *heights, class_="heights", aria_hidden="true"), svg, class_="plot"),
        tag("div", *_labels(places), class_="places", aria_hidden="true"),
        _table(series, places, format),
        class_="chart",
    )


def _pointers(series: Sequence[Series], places: Sequence[str], format: Format) -> list[Html]:
    """What a place says to whoever points at it."""
    width = _WIDTH / max(1, len(places))
    found = []
    for place, name in enumerate(places):
        said = [f"{each.name}: {format(value)}" for each in series if (value := each.values[place]) is not None]
        if said:
            box = {"x": place * width, "y": 0.0, "width": width, "height": _HEIGHT}
            written = {key: f"{value:.1f}" for key, value in box.items()}
            found.append(tag("rect", tag("title", "\n".join([name, *said])), **written))
    return found


def _labels(places: Sequence[str]) -> list[Html]:
    """The names of a few places, the first and the last among them."""
    count = min(_LABELS, len(places))
    chosen = [round(n * (len(places) - 1) / max(1, count - 1)) for n in range(count)]
    return [tag("span", places[place]) for place in chosen]


def _legend(series: Sequence[Series]) -> Html:
    items = [
        tag("li", tag("i", class_=f"swatch s{number}"), each.name)
        for number, each in enumerate(series[:MOST_SERIES], 1)
    ]
    left = len(series) - MOST_SERIES
    if left > 0:
        items.append(tag("li", f"and {left} more in the table"))
    return tag("ul", *items, class_="legend")


def _table(series: Sequence[Series], places: Sequence[str], format: Format) -> Html:
    rows = []
    for place, name in enumerate(places):
        values = [each.values[place] for each in series]
        if any(values):
            cells = [tag("td", "–" if value is None else format(value)) for value in values]
            rows.append(tag("tr", tag("th", name, scope="row"), *cells))
    head = tag("tr", tag("th", "", scope="col"), *(tag("th", each.name, scope="col") for each in series))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("details", tag("summary", "as a table"), tag("div", table, class_="scroll"))
