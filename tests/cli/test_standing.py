"""What people look at: the backlog first, across all streams, and numbers as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import postbus
from postbus.cli import output, standing
from postbus.model.errors import InvalidInput
from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server


@pytest.fixture
def shell(fresh_url: str) -> Shell:
    """Two streams and a queue; billing has one message in flight, one that failed, one dead letter, and two to come."""
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        bus.create_stream("payments")
        bus.create_queue("emails")
        billing = bus.create_consumer("orders", "billing", order="none")
        bus.create_consumer("payments", "audit", retain_dead=86400)
        bus.create_group("payments", "readers")
        for number in range(6):
            bus.publish("orders", key="k", data=number)
        for _ in range(3):
            bus.publish("payments", key="k", data=1)
            bus.queue("emails").publish(1)
        bus.publish("emails", data=1, delay=600)
        one, two, three, _ = billing.receive(4)
        billing.ack(one)
        billing.nack(two, delay=600)
        billing.terminate(three, reason="broken")
    return Shell(fresh_url)


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_consumers_of_all_streams_are_listed_with_their_backlogs(shell: Shell) -> None:
    printed = rows(shell("consumer", "ls"))
    assert printed[0][:6] == ["STREAM", "NAME", "BACKLOG", "IN", "FLIGHT", "WAITING"]
    assert [line[:6] for line in printed[1:]] == [
        ["emails", "emails", "3", "0", "0", "0"],
        ["orders", "billing", "4", "1", "1", "1"],
        ["payments", "audit", "3", "0", "0", "0"],
        ["payments", "readers", "3", "0", "0", "0"],
    ]
    assert [
        (each["stream"], each["name"], each["backlog"], each["backlog_is_exact"])
        for each in shell.objects("consumer", "ls")
    ] == [
        ("emails", "emails", 3, True),
        ("orders", "billing", 4, True),
        ("payments", "audit", 3, True),
        ("payments", "readers", 3, True),
    ]
    assert [line[:5] for line in rows(shell("consumer", "ls", "orders"))[1:]] == [["billing", "4", "1", "1", "1"]]
    (listed,) = shell.objects("consumer", "ls", "orders")
    assert (listed["backlog"], listed["max_deliver"], listed["ack_wait"]) == (4, None, 30.0)


def test_queues_and_groups_are_listed_with_their_backlogs(shell: Shell) -> None:
    header, queue = rows(shell("queue", "ls"))
    assert header[:2] == ["NAME", "BACKLOG"]
    assert queue[:6] == ["emails", "3", "0", "0", "0", "1"]
    (group,) = shell.objects("group", "ls")
    assert (group["stream"], group["name"], group["backlog"]) == ("payments", "readers", 3)


def test_what_has_dead_letters_or_scheduled_messages_is_listed_for_all_streams(shell: Shell) -> None:
    assert rows(shell("dead", "ls")) == [["STREAM", "CONSUMER", "DEAD", "BACKLOG"], ["orders", "billing", "1", "4"]]
    assert shell("dead", "ls", "payments") == ""
    assert [each["reason"] for each in shell.objects("dead", "ls", "orders", "billing")] == ["broken"]
    with pytest.raises(InvalidInput, match="consumer"):
        shell("dead", "ls", "orders", "--reason", "x%")
    assert rows(shell("schedule", "ls"))[1][:2] == ["emails", "1"]
    assert len(shell.objects("schedule", "ls", "emails")) == 1


def test_info_begins_with_the_numbers(shell: Shell) -> None:
    lines = shell("consumer", "info", "orders", "billing").splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["backlog", "4"],
        ["in", "flight", "1"],
        ["waiting", "1"],
        ["dead", "1"],
    ]
    assert lines.index("") < next(place for place, line in enumerate(lines) if line.startswith("ack wait"))
    assert "retain dead         1 day" in shell("consumer", "info", "payments", "audit")
    queue = shell("queue", "info", "emails").splitlines()
    assert queue[0].split() == ["backlog", "3"]
    assert ["scheduled", "1"] in [line.split() for line in queue]
    stream = shell("stream", "info", "orders").splitlines()
    assert [line.split() for line in stream[:3]] == [["name", "orders"], ["messages", "6"], ["scheduled", "0"]]
    assert rows(shell("stream", "ls"))[2][:2] == ["orders", "6"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (86400, "1 day"),
        (2 * 86400 + 3600, "2 days 1h"),
        (5400, "1h30m"),
        (30, "30s"),
        (0.25, "0.25s"),
        (0, "0s"),
        (61, "1m1s"),
    ],
)
def test_durations_are_in_units_that_people_use(seconds: float, text: str) -> None:
    assert output.cell(timedelta(seconds=seconds)) == text


def test_numbers_have_separators_and_names_do_not() -> None:
    assert (output.cell(1000), output.cell(999), output.cell(1000, "seq"), output.cell(-12345.5)) == (
        "1,000",
        "999",
        "1000",
        "-12,345.5",
    )
    assert (output.counted(1, "dead letter"), output.counted(1000, "dead letter")) == (
        "1 dead letter",
        "1,000 dead letters",
    )


@pytest.mark.parametrize(
    ("number", "is_exact", "text"),
    [
        (1234, True, "1,234"),
        (12345, False, "~12,300"),
        (1004, False, "~1,000"),
        (1_234_567, False, "~1,230,000"),
        (5, False, "~5"),
    ],
)
def test_an_estimate_is_marked_and_rounded(number: int, is_exact: bool, text: str) -> None:
    assert standing.about(number, is_exact=is_exact) == text
