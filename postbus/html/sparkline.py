"""Small charts as SVG, without styles of their own: a policy of a page may forbid them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from postbus.html.markup import Html, tag

_WIDTH: Final = 120.0
_HEIGHT: Final = 24.0
_CHART_WIDTH: Final = 720.0
_CHART_HEIGHT: Final = 140.0


def sparkline(values: Sequence[float], *, label: str) -> Html:
    """A line without axes."""
    return _svg(values, _WIDTH, _HEIGHT, label=label, class_="spark")


def area_chart(values: Sequence[float], places: Sequence[str], *, label: str, said: Callable[[float], str]) -> Html:
    """An area with its highest value, and the names of its ends. Each place tells its value to whoever points at it."""
    top = max(values, default=0.0)
    step = _CHART_WIDTH / max(1, len(values))
    pointers = [
        tag(
            "rect",
            tag("title", f"{place}: {said(value)}"),
            x=f"{index * step:.1f}",
            y="0",
            width=f"{step:.1f}",
            height=f"{_CHART_HEIGHT:g}",
        )
        for index, (place, value) in enumerate(zip(places, values, strict=True))
    ]
    chart = _svg(values, _CHART_WIDTH, _CHART_HEIGHT, *pointers, label=label, class_="area")
    ends = tag(
        "div", tag("span", places[0] if places else ""), tag("span", places[-1] if places else ""), class_="ends"
    )
    return tag("figure", tag("figcaption", said(top), class_="top"), chart, ends, class_="chart")


def _svg(values: Sequence[float], width: float, height: float, *more: Html, label: str, class_: str) -> Html:
    top = max(values, default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    points = [(index * step, height - 1 - (height - 2) * value / top) for index, value in enumerate(values)]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    shapes = (
        []
        if len(points) < 3
        else [
            tag("path", d=f"M0 {height:g}L{line}L{width:g} {height:g}Z", class_="fill"),
            tag("path", d=f"M{line}", class_="stroke"),
        ]
    )
    return tag(
        "svg",
        tag("title", label),
        *shapes,
        *more,
        viewBox=f"0 0 {width:g} {height:g}",
        preserveAspectRatio="none",
        role="img",
        class_=class_,
    )
