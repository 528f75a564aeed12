"""Publishes a file of JSON lines in batches, in constant memory, starting at any line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from postbus.cli import as_curl, output
from postbus.cli.global_options import current
from postbus.model.errors import ConnectionLost, InvalidInput
from postbus.model.message import Message

if TYPE_CHECKING:
    from postbus import Bus

_BATCH: Final = 2000
_REPORT_SECONDS: Final = 1.0
# Called after each batch with how many lines are done and how many bytes of the file were read.
Report = Callable[[int, int], None]


def send_file(
    bus: Bus, stream: str, file: Path, skip: int, *, ttl: float | None, delay: float | None, priority: int
) -> None:
    """Publish lines in batches. A batch is published as a whole or not at all, so a failure names the line to resume after."""
    started = time.monotonic()
    sent = skip
    with _opened(file) as source, _reporting(_size(file)) as report:
        read = _Counter()
        with as_curl.preparing():
            data_type = bus.stream_info(stream).data_type
        for batch in _batches(_parsed(islice(read.lines(source), skip, None), skip, data_type, priority)):
            try:
                bus.publish_many(stream, batch, ttl=ttl, delay=delay)
            except as_curl.Shown:
                continue
            except BaseException as error:
                _say_where_to_go_on(stream, sent, len(batch), error)
                raise
            sent += len(batch)
            report(sent - skip, read.bytes)
    if current().as_curl:
        return
    elapsed = max(time.monotonic() - started, 1e-6)
    count = sent - skip
    what = output.counted(count, "message")
    output.emit_number(count, f"published {what}, {count / elapsed:,.0f} per second", name="published")


def _say_where_to_go_on(stream: str, sent: int, count: int, error: BaseException) -> None:
    if isinstance(error, ConnectionLost):
        output.say(
            f"{sent:,} lines are published, and either all or none of the next {count:,}. "
            f"Check with: postbus stream read {stream} --backwards -n 1; resume with --skip {sent} or --skip {sent + count}"
        )
    else:
        output.say(f"{sent:,} lines are published; resume with: --skip {sent}")


class _Counter:
    """Counts the bytes of lines as they pass."""

    def __init__(self) -> None:
        self.bytes = 0

    def lines(self, source: Iterable[bytes]) -> Iterator[bytes]:
        for line in source:
            self.bytes += len(line)
            yield line


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    with source:
        yield source


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


def _parsed(lines: Iterable[bytes], skipped: int, data_type: str, priority: int) -> Iterator[Message]:
    from postbus.codec.content import decode_json

    for number, line in enumerate(lines, start=skipped + 1):
        if line.isspace():
            continue
        try:
            value = decode_json(line)
            data = value["data"]
            message = Message(
                key=value.get("key"),
                data=data.encode() if data_type == "bytes" else data,
                headers=value.get("headers"),
                dedup_id=value.get("dedup_id"),
                priority=value.get("priority", priority),
            )
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InvalidInput(f'line {number} is not an object with "data": {error}') from error
        yield message


def _batches(values: Iterator[Message]) -> Iterator[list[Message]]:
    while batch := list(islice(values, _BATCH)):
        yield batch


@contextmanager
def _reporting(size: int | None) -> Iterator[Report]:
    """A bar on a terminal, a line each second elsewhere, nothing with --quiet."""
    if sys.stderr.isatty() and not current().quiet:
        with _bar(size) as report:
            yield report
        return
    started = reported = time.monotonic()

    def say(count: int, _: int) -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported >= _REPORT_SECONDS:
            reported = now
            output.say(f"{count:,} messages, {count / (now - started):,.0f} per second")

    yield say


@contextmanager
def _bar(size: int | None) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")]
    if size is None:
        columns = columns[2:]
    started = time.monotonic()
    with Progress(*columns, *([] if size is None else [TimeRemainingColumn()]), console=Console(stderr=True)) as bar:
        task = bar.add_task("0 messages", total=size)

        def show(count: int, read: int) -> None:
            rate = count / max(time.monotonic() - started, 1e-6)
            bar.update(task, completed=read, description=f"{count:,} messages, {rate:,.0f}/s")

        yield show
