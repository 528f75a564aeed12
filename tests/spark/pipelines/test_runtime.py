"""What every pipeline has: a state that Postgres knows, progress, a graceful stop."""

from __future__ import annotations

import io
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.pipelines.runtime.progress import Lines
from postbus.pipelines.runtime.run import running
from tests.cli.shell import Shell
from tests.spark.test_read import publish


@dataclass(frozen=True)
class Options:
    stream: str


def known(bus: postbus.Bus, stream: str) -> postbus.PipelineInfo:
    (found,) = [each for each in bus.list_pipelines() if each.stream == stream]
    return found


def test_a_run_is_known_while_it_lasts_and_afterwards(bus: postbus.Bus, url: str, stream: str) -> None:
    with running(url, f"x {stream}", "x", stream, Options(stream)) as run:
        run.note(5, 20, 7)
        found = known(bus, stream)
        assert (found.state, found.run_count, found.total_estimate, found.position_seq) == ("running", 5, 20, 7)
        assert found.rate > 0
    with running(url, f"x {stream}", "x", stream, Options(stream)) as run:
        run.note(2, 2)
    found = known(bus, stream)
    assert (found.state, found.message_count, found.run_count, found.position_seq) == ("done", 7, 2, 7)


def test_a_run_that_fails_leaves_its_error(bus: postbus.Bus, url: str, stream: str) -> None:
    with (
        pytest.raises(postbus.Conflict),
        running(url, f"x {stream}", "x", stream, Options(stream)),
    ):
        raise postbus.Conflict("no luck")

    assert (known(bus, stream).state, known(bus, stream).last_error) == ("failed", "no luck")


def test_a_newer_run_takes_the_place_of_an_older_one(bus: postbus.Bus, url: str, stream: str) -> None:
    with running(url, f"x {stream}", "x", stream, Options(stream)) as old:
        with running(url, f"x {stream}", "x", stream, Options(stream)) as new:
            new.note(1, 1)
            with pytest.raises(postbus.Conflict, match="another run"):
                old.note(1, 1)
        assert known(bus, stream).state == "done"
        old.stop()

    assert (known(bus, stream).state, known(bus, stream).run_count) == ("done", 1)


def test_a_signal_ends_a_run_after_its_step(bus: postbus.Bus, url: str, stream: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with running(url, f"x {stream}", "x", stream, Options(stream)) as run:
        os.kill(os.getpid(), signal.SIGTERM)
        assert run.is_stopping
        run.wait(60)

    assert known(bus, stream).state == "stopped"
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_a_terminal_progress_is_json(url: str, stream: str) -> None:
    out = io.StringIO()
    with running(url, f"x {stream}", "x", stream, Options(stream), show=Lines(out)) as run:
        run.note(3, 3)

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["state"] for line in lines] == ["running", "done"]
    assert (lines[-1]["messages"], lines[-1]["of"]) == (3, 3)


def test_the_command_archives_verifies_and_lists(
    shared_spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "options.yml").write_text(f"to: {tmp_path / 'lake'}\nkey-tokens: 1\n")

    def run(*arguments: str) -> Any:
        return Shell(url).objects("pipeline", *arguments)

    publish(bus, stream, 5)
    assert run("run", "archive", stream, "--options", str(tmp_path / "options.yml")) == [{"archived": 5}]
    (verified,) = run("run", "archive", stream, "--verify")
    assert (verified["archived"], verified["problems"]) == (5, [])
    assert f"archive {stream}" in [each["name"] for each in run("ls")]
    assert Shell(url).run("pipeline", "run", "archive", stream, "-q").err == ""
    next((tmp_path / "lake").rglob("*.parquet")).unlink()
    with pytest.raises(postbus.Conflict, match="is gone"):
        run("run", "archive", stream, "--verify")
    (tmp_path / "options.yml").write_text("tow: /lake\n")
    with pytest.raises(postbus.InvalidInput, match='option "tow" is not known'):
        run("run", "archive", stream, "--options", str(tmp_path / "options.yml"))
    with pytest.raises(postbus.NotFound, match="no-such"):
        run("run", "archive", "no-such")
    with pytest.raises(postbus.InvalidInput, match="pipelines need Postgres itself"):
        Shell("http://127.0.0.1:1").objects("pipeline", "run", "archive", stream)
