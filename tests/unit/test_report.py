"""Buckets, percentiles and forecasts of a report, by figures that can be worked out by hand."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from postbus import InvalidInput
from postbus.html.charts import linear, logarithmic
from postbus.html.markup import Html, tag
from postbus.pipelines.report.buckets import buckets_between
from postbus.pipelines.report.deliveries import percentiles
from postbus.pipelines.report.facts import ConsumerFacts, Forecast, StreamFacts, Traffic
from postbus.pipelines.report.forecast import forecast
from postbus.pipelines.report.sections import consumers
from postbus.spark.archive import Archive
from tests.browser.sample import NOW, info

DAY = timedelta(days=1)


def test_buckets_hold_both_ends_and_are_as_many_as_a_chart_can_show() -> None:
    for span in (timedelta(0), timedelta(seconds=100), timedelta(hours=7), 40 * DAY, 4000 * DAY):
        buckets = buckets_between(NOW - span, NOW)
        assert buckets.starts[0] <= NOW - span
        assert buckets.starts[-2] <= NOW < buckets.starts[-1]
        assert buckets.count <= 135
    with pytest.raises(InvalidInput, match="would be"):
        buckets_between(NOW - DAY, NOW, 1.0)


def test_values_outside_the_buckets_are_left_out() -> None:
    buckets = buckets_between(datetime(1970, 1, 1, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 3, tzinfo=UTC), 60)

    assert buckets.spread([(0, 5), (1, 7), (3, 2), (3, 1), (4, 9), (None, 1)]) == (7, 0, 3)


def test_percentiles_of_bins_are_within_two_per_cent() -> None:
    chance = random.Random(1)
    values = sorted(chance.lognormvariate(0, 3) for _ in range(5000))
    found = percentiles((math.floor(math.log(value * 1e6) / math.log(1.04)), 1) for value in values)

    for share, value in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        assert value == pytest.approx(values[math.ceil(5000 * share) - 1], rel=0.02)
    assert percentiles([]).p50 is None


def known(found: Forecast | None) -> Forecast:
    assert found is not None
    return found


def steady(days: int = 10, per_day: int = 2400) -> tuple[Traffic, datetime]:
    """A stream that gets as many messages in every hour."""
    counts = (per_day // 24,) * (24 * days)
    return Traffic(messages=counts, bytes=tuple(100 * count for count in counts), in_log=counts), NOW - days * DAY


def test_without_retention_a_steady_stream_grows_by_its_rate() -> None:
    traffic, start = steady()
    buckets = buckets_between(start, NOW - timedelta(seconds=1), 3600)
    archive = Archive("/lake", 0, 24_000, 1, 24_000, 480_000)

    found = known(forecast(info("s", retain_up_to=None, bytes=2_400_000), traffic, buckets, archive, NOW))

    assert (found.per_day, found.per_day_low, found.per_day_high) == pytest.approx((2400, 2400, 2400))
    assert [found.points[day].messages for day in (0, 1, 30)] == [24_000, 26_400, 96_000]
    assert found.points[30].bytes == 9_600_000
    assert found.points[30].archive_bytes == 480_000 * 4
    assert (found.bound, found.full_in) == (None, None)


def test_retention_evicts_old_messages_while_new_ones_arrive() -> None:
    traffic, start = steady()
    buckets = buckets_between(start, NOW - timedelta(seconds=1), 3600)

    found = known(forecast(info("s", retain_up_to=12 * DAY), traffic, buckets, None, NOW))

    assert [found.points[day].messages for day in (0, 1, 2, 7, 12, 90)] == [24_000, 26_400, *[28_800] * 4]
    assert found.bound == "messages older than 12 days go"


def test_a_limit_is_reached_on_a_day_and_never_passed() -> None:
    traffic, start = steady()
    buckets = buckets_between(start, NOW - timedelta(seconds=1), 3600)

    found = known(forecast(info("s", retain_up_to=None, max_messages=36_000), traffic, buckets, None, NOW))

    assert found.full_in == pytest.approx(5)
    assert [found.points[day].messages for day in (4, 5, 6)] == [33_600, 36_000, 36_000]


def test_a_stream_that_has_fallen_silent_does_not_grow() -> None:
    traffic, start = steady(days=2)
    buckets = buckets_between(start - 20 * DAY, NOW - 20 * DAY - timedelta(seconds=1), 3600)

    found = known(forecast(info("s", retain_up_to=None), traffic, buckets, None, NOW))

    assert (found.per_day, found.points[90].messages) == (0, 4800)


def test_less_than_an_hour_is_too_little_for_a_forecast() -> None:
    buckets = buckets_between(NOW - timedelta(minutes=30), NOW, 60)
    counts = (10,) * buckets.count

    assert forecast(info("s"), Traffic(messages=counts, bytes=counts, in_log=counts), buckets, None, NOW) is None


def test_axes_have_round_numbers_that_hold_all_values() -> None:
    assert linear([0, 3, 17]).ticks == (0, 5, 10, 15, 20)
    assert linear([1, 2]).ticks == (0, 1, 2)
    assert linear([]).high > 0
    axis = logarithmic([0.002, 40])
    assert (axis.low, axis.high) == (0.001, 100)
    assert axis.height(0.001) == 0
    assert axis.height(100) == pytest.approx(1)


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("a", "<b>", Html("<i>"), title='"&') == '<a title="&quot;&amp;">&lt;b&gt;<i></a>'


@pytest.mark.parametrize(("levels", "is_shown"), [({4: 3}, False), ({9: 1200, 4: 3}, True)])
def test_what_waits_at_each_priority_is_shown_where_there_are_several(levels: dict[int, int], is_shown: bool) -> None:
    reader = ConsumerFacts(
        name="c", lag=3, in_flight=0, waiting=0, dead=0, missed=0, is_group=False, by_priority=levels
    )
    stream = StreamFacts(
        info=info("s"), buckets=None, traffic=Traffic(), consumers=(reader,), dead=(), forecast=None, archived=None
    )
    page = str(consumers(stream))
    assert ("by priority" in page) is is_shown
    assert ("9: 1,200, 4: 3" in page) is is_shown
