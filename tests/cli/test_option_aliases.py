"""Options as Sequin's README of 2024 prints them."""

from __future__ import annotations

import pytest

from postbus.cli.option_aliases import translated

KNOWN = {
    "--ack-wait",
    "--max-messages",
    "--state",
    "--one-message-per-key",
    "--no-one-message-per-key",
    "--retain-at-least",
    "--delay",
    "--wait",
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--batch-size=10"], ["--max-messages=10"]),
        (["--batch-size", "10"], ["--max-messages", "10"]),
        (["--count", "3", "-n", "3"], ["--max-messages", "3", "-n", "3"]),
        (["--ack-wait-ms=60000"], ["--ack-wait=60000ms"]),
        (["--ack-wait-ms", "60000"], ["--ack-wait=60000ms"]),
        (["--one-message-per-key=true"], ["--one-message-per-key"]),
        (["--one-message-per-key=false"], ["--no-one-message-per-key"]),
        (["--retain-at-least=infinite"], ["--retain-at-least=36500d"]),
        (["--deliver-in", "1h", "--wait-for=5s"], ["--delay", "1h", "--wait=5s"]),
        (["--pending"], ["--state=delivered"]),
        (["a=true", "--", "--batch-size=10"], ["a=true", "--", "--batch-size=10"]),
        (["--reason=true"], ["--reason=true"]),
    ],
)
def test_an_option_as_another_tool_has_it_means_ours(given: list[str], meant: list[str]) -> None:
    assert list(translated(given, KNOWN)) == meant


def test_an_option_is_left_alone_where_ours_does_not_exist() -> None:
    assert list(translated(["--batch-size=10", "--pending"], {"--name"})) == ["--batch-size=10", "--pending"]
