"""The page of a report in a real browser: complete, quiet, readable in light and dark, wide and narrow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from postbus.pipelines.report.facts import Report
from postbus.pipelines.report.page import page
from tests.browser import sample

WIDE, PHONE = 1280, 375
Scheme = Literal["light", "dark"]


@contextmanager
def shown(
    browser: Browser, tmp_path: Path, report: Report, *, width: int = WIDE, scheme: Scheme = "light"
) -> Iterator[Page]:
    """The page, which asks for nothing beside its own file and has nothing to complain about."""
    file = tmp_path / "report.html"
    file.write_text(page(report), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    try:
        tab.goto(file.as_uri())
        yield tab
        assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
        assert said == []
    finally:
        tab.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
        context.close()


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_its_window_and_is_readable(browser: Browser, tmp_path: Path, width: int, scheme: Scheme) -> None:
    with shown(browser, tmp_path, sample.report(sample.busy(), sample.empty()), width=width, scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert contrast(tab, "body", "main p") >= 4.5
        assert contrast(tab, "figure.chart", "figure.chart .unit") >= 4.5
        is_dark = brightness(tab.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2
        assert is_dark == (scheme == "dark")
        for box in (each.bounding_box() for each in tab.locator("figure svg").all()):
            assert box is not None
            assert box["width"] > 200
            assert 120 < box["height"] < 300
        sizes = tab.evaluate("[...document.querySelectorAll('.heights span')].map(e => e.getBoundingClientRect().left)")
        assert min(sizes) >= 0
    assert (tmp_path / f"{width}-{scheme}.png").stat().st_size > 20_000


def test_charts_have_what_the_figures_say(browser: Browser, tmp_path: Path) -> None:
    stream = sample.busy()
    with shown(browser, tmp_path, sample.report(stream)) as tab:
        published = tab.locator("figure.chart", has_text="Messages published")
        heights = published.locator(".columns rect").evaluate_all("all => all.map(e => e.getBBox().height)")
        most = max(stream.traffic.messages)
        expected = [count / most for count in stream.traffic.messages]
        assert [height / max(heights) for height in heights] == pytest.approx(expected, abs=0.01)
        assert published.locator("tbody tr").count() == len(stream.traffic.messages)
        latency = tab.locator("figure.chart", has_text="Latency of billing")
        assert latency.locator("path.line").count() == 3
        # Five hours without an ack break the line twice, and the hour between them is a stroke of its own.
        assert (latency.locator("path.line").first.get_attribute("d") or "").count("M") == 3
        lag = tab.locator("figure.chart", has_text="Lag over time")
        assert lag.locator("path.line").count() == 2
        assert "billing: 700" in (lag.locator(".pointers rect title").first.text_content() or "")
        names = tab.locator("figure svg").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
        assert all(names)
        assert len(set(names)) == len(names)


def test_text_from_messages_is_not_rendered_as_html(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, sample.report(sample.busy())) as tab:
        assert tab.title() == "Postbus report: orders"
        assert tab.locator("script, img").count() == 0
        assert tab.get_by_text(sample.HOSTILE).count() == 2


def test_an_empty_report_says_so(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, sample.report(sample.empty())) as tab:
        assert tab.get_by_text("No message was published in this time.").is_visible()
        assert tab.get_by_text("The stream has no consumer.").is_visible()
        assert tab.locator("svg").count() == 0
    with shown(browser, tmp_path, sample.report()) as tab:
        assert tab.get_by_text("There are no streams yet.").is_visible()


def contrast(tab: Page, behind: str, before: str) -> float:
    """How well text can be read, as WCAG counts it: from 1 to 21."""
    back = luminance(tab.locator(behind).first.evaluate("e => getComputedStyle(e).backgroundColor"))
    front = luminance(tab.locator(before).first.evaluate("e => getComputedStyle(e).color"))
    return (max(back, front) + 0.05) / (min(back, front) + 0.05)


def luminance(colour: str) -> float:
    shares = [value / 12.92 if value <= 0.04045 else math.pow((value + 0.055) / 1.055, 2.4) for value in _parts(colour)]
    return 0.2126 * shares[0] + 0.7152 * shares[1] + 0.0722 * shares[2]


def brightness(colour: str) -> float:
    return sum(_parts(colour)) / 3


def _parts(colour: str) -> list[float]:
    return [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
