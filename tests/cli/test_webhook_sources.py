"""`postbus source webhook`: what it asks for, says and refuses."""

from __future__ import annotations

import pytest

import postbus
from postbus.cli import options
from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server


@pytest.fixture
def shell(fresh_url: str) -> Shell:
    found = Shell(fresh_url)
    found("stream", "add", "payments", "--dedup-window", "3d")
    return found


def test_on_a_terminal_it_asks_for_what_is_missing(
    shell: Shell, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "can_ask", lambda: True)

    said = shell.run("source", "webhook", "add", input="stripe\npayments\nstrip\nstripe\nwhsec_hidden\n")

    assert '"strip" is not a kind of webhook source' in said.err
    assert "whsec_hidden" not in said.out + said.err
    assert "/api/webhook/stripe" in said.err
    with postbus.connect(fresh_url) as bus:
        info = bus.webhook_sources.info("stripe")
    assert (info.stream, info.kind, info.secret_count) == ("payments", "stripe", 1)


def test_without_a_terminal_it_says_what_is_missing(shell: Shell) -> None:
    for arguments, missing in (((), "name"), (("stripe",), "stream"), (("stripe", "payments"), "kind")):
        with pytest.raises(postbus.InvalidInput, match=f"the {missing}.* is missing"):
            shell("source", "webhook", "add", *arguments)


def test_a_secret_comes_from_stdin_or_is_made_and_is_never_listed(shell: Shell) -> None:
    shell("source", "webhook", "add", "stripe", "payments", "--kind", "stripe", "--secret", "-", input="whsec_given\n")
    (made,) = shell("source", "webhook", "add", "github", "payments", "--kind", "github").splitlines()
    assert made.startswith("whsec_")
    shown = shell("source", "webhook", "ls") + shell("source", "webhook", "info", "stripe", "--json")
    shown += shell("source", "webhook", "info", "github")
    assert "whsec_" not in shown
    with pytest.raises(postbus.InvalidInput, match="secrets are missing"):
        shell("source", "webhook", "add", "slack", "payments", "--kind", "slack")


def test_what_is_odd_is_named(shell: Shell) -> None:
    for arguments, message in (
        (("--kind", "paypal"), '"paypal" is not a kind'),
        (("--kind", "hmac", "-o", "header"), '"header" is not NAME=VALUE'),
        (("--kind", "hmac", "-o", "header=X-Sig", "-o", "tolerance=long"), '"tolerance" is not a number'),
        (("--kind", "hmac"), '"header" is missing'),
    ):
        with pytest.raises(postbus.InvalidInput, match=message):
            shell("source", "webhook", "add", "odd", "payments", *arguments)
    with pytest.raises(postbus.NotFound, match='webhook source "odd" does not exist'):
        shell("source", "webhook", "rm", "odd", "--yes")
