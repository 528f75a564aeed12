"""`postbus schedule`: recurring schedules from the command line."""

from __future__ import annotations

import pytest

import postbus
from tests.cli.shell import Shell


def test_a_schedule_is_added_listed_run_edited_and_removed(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "reports")
    said = shell.run(
        "schedule", "add", "reports", "nightly", '{"kind": "daily"}', "--cron", "30 2 * * *", "--key", "r.1"
    )
    assert said.err.startswith("created schedule nightly; it is next due at ")
    shell("schedule", "add", "reports", "often", "1", "--every", "10m", "--catch-up", "skip")

    listed = shell("schedule", "ls")
    assert "30 2 * * * UTC" in listed
    assert "every 10m" in listed
    assert shell("schedule", "run", "reports", "nightly").strip() == "1"
    shell("schedule", "pause", "reports", "often")
    assert "paused" in shell("schedule", "ls", "reports")
    shell("schedule", "resume", "reports", "often")
    shell("schedule", "edit", "reports", "nightly", "--cron", "@weekly", "--data", "2", "--unset", "key")

    info = shell("schedule", "info", "reports", "nightly")
    assert "@weekly" in info
    assert info.count("next  ") == 5
    assert "seq 1  run by hand" in info
    (found,) = shell.objects("schedule", "info", "reports", "nightly")
    assert (found["key"], found["data"], found["last_runs"][0]["seq"]) == (None, 2, 1)
    shell("schedule", "rm", "reports", "nightly", "--yes")
    shell("schedule", "rm", "reports", "often", "--yes")
    assert shell.run("schedule", "ls").err.strip() == "nothing is scheduled"


def test_recurring_schedules_and_messages_that_are_scheduled_once_are_listed_apart(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "reports")
    shell("schedule", "add", "reports", "often", "1", "--every", "10m")
    shell("message", "send", "reports", "r.1", "3", "--delay", "1h")

    first, second = shell("schedule", "ls", "reports").split("\n\n")

    assert first.startswith("STREAM")
    assert "often" in first
    assert second.startswith("ID")
    assert "r.1" in second


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--cron", "0 0 31 2 *"], "not an expression that fires"),
        (["--every", "soon"], "is not a duration"),
        (["--every", "1m", "--catch-up", "some"], "is not a way to catch up"),
        (["--cron", "@daily", "--time-zone", "Mars/Olympus"], "time_zone"),
        ([], "either cron or every"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(fresh_url: str, options: list[str], problem: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "reports")
    with pytest.raises(postbus.InvalidInput, match=problem):
        shell("schedule", "add", "reports", "s", "1", *options)
