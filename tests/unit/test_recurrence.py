"""The times of recurring schedules: cron in a time zone, intervals on a grid, and what is caught up on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postbus import InvalidInput
from postbus.model.recurrence import CatchUp, Recurrence

BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def cron(text: str, zone: str = "Europe/Berlin") -> Recurrence:
    return Recurrence(text, None, zone, BEGIN)


def every(seconds: float) -> Recurrence:
    return Recurrence(None, timedelta(seconds=seconds), "UTC", BEGIN)


@pytest.mark.parametrize(
    ("text", "day", "times"),
    [
        # The hour from two to three is left out.
        ("30 2 * * *", datetime(2026, 3, 29, tzinfo=BERLIN), ["03:00+02:00"]),
        ("0 2 * * *", datetime(2026, 3, 29, tzinfo=BERLIN), ["03:00+02:00"]),
        (
            "0 * * * *",
            datetime(2026, 3, 29, tzinfo=BERLIN),
            ["00:00+01:00", "01:00+01:00", "03:00+02:00", "04:00+02:00"],
        ),
        # That hour comes twice: a time of day fires once, a time of each hour each time.
        ("30 2 * * *", datetime(2026, 10, 25, tzinfo=BERLIN), ["02:30+02:00"]),
        (
            "0 * * * *",
            datetime(2026, 10, 25, tzinfo=BERLIN),
            ["00:00+02:00", "01:00+02:00", "02:00+02:00", "02:00+01:00", "03:00+01:00", "04:00+01:00"],
        ),
        (
            "*/30 2 * * *",
            datetime(2026, 10, 25, tzinfo=BERLIN),
            ["02:00+02:00", "02:30+02:00", "02:00+01:00", "02:30+01:00"],
        ),
    ],
)
def test_when_clocks_change_no_time_of_day_is_lost_or_doubled(text: str, day: datetime, times: list[str]) -> None:
    begin = day - timedelta(seconds=1)
    end = day.replace(hour=4, minute=30)
    found = [each.astimezone(BERLIN) for each in islice(cron(text).after(begin), 8)]

    assert [each.isoformat(timespec="minutes")[11:] for each in found if each < end] == times


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 2 *", "* * * *", "60 * * * *", "often", "", "@often"])
def test_an_expression_that_never_fires_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cron"):
        cron(text).check()


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe", "/etc/localtime"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidInput, match="time_zone"):
        cron("* * * * *", zone).check()


@pytest.mark.parametrize(
    ("alias", "text"),
    [("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@weekly", "0 0 * * 0"), ("@monthly", "0 0 1 * *")],
)
def test_aliases_are_expressions(alias: str, text: str) -> None:
    assert list(islice(cron(alias).after(BEGIN), 9)) == list(islice(cron(text).after(BEGIN), 9))


def test_an_interval_stays_on_its_grid() -> None:
    times = list(islice(every(90).after(BEGIN + timedelta(days=3, seconds=1)), 3))
    assert [(time - BEGIN).total_seconds() % 90 for time in times] == [0, 0, 0]
    assert times[0] - BEGIN == timedelta(days=3, seconds=90)


RULES = st.sampled_from(
    [every(1), every(7), every(3600), every(86400), cron("*/5 * * * *"), cron("@daily"), cron("0 0 29 2 *")]
)
CATCH_UPS: st.SearchStrategy[CatchUp] = st.sampled_from(["latest", "skip", "all"])


@given(rule=RULES, catch_up=CATCH_UPS, most=st.integers(1, 5), outage=st.integers(0, 10**7))
def test_fillings_follow_each_other_without_gap_or_overlap(
    rule: Recurrence, catch_up: CatchUp, most: int, outage: int
) -> None:
    now = BEGIN + timedelta(seconds=outage)
    first = rule.filling(BEGIN, now, catch_up, most)
    second = rule.filling(first.until, now + timedelta(minutes=40), catch_up, most)

    times = [*first.occurrences, *second.occurrences]
    assert all(before < after for before, after in pairwise(times))
    assert all(time > BEGIN for time in times)
    assert first.until >= first.occurrences[-1] > now
    ahead = [time for time in times if time > now]
    assert ahead == list(islice(rule.after(now), len(ahead)))
    missed = [time for time in first.occurrences if time < now - timedelta(minutes=1)]
    assert len(missed) <= {"skip": 0, "latest": 1, "all": most}[catch_up]
