"""Runs jobs at the same time, each in a process of its own, and measures from their common start to the last one's end.

Processes, not threads: with Python's one lock, threads would measure Python. They come from a fork server, which holds neither
the locks nor the connections of this process, and starts one faster than a new interpreter would.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Barrier
from typing import Final, Protocol

from benchmarks.comparison import Measurement

_PREPARE_SECONDS: Final = 600.0
_context: Final = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["benchmarks.systems"])


class Job(Protocol):
    """Work for one process. It is pickled on its way there."""

    def prepared(self) -> AbstractContextManager[Callable[[], int]]:
        """Connect and warm up; the result does the work to be measured and returns the number of messages."""


class JobFailed(RuntimeError):
    """A job raised, or its process ended."""


@dataclass(frozen=True, slots=True)
class _Span:
    """When a job worked. The monotonic clock is one for all processes of a machine."""

    started_at: float
    ended_at: float
    message_count: int


def run_together(jobs: Sequence[Job]) -> Measurement:
    """Run the jobs, which start together once all are prepared.

    Raises:
        JobFailed: The message holds the traceback of the job that failed first.
    """
    barrier = _context.Barrier(len(jobs))
    answers = [_start(job, barrier) for job in jobs]
    spans = _collect(answers, barrier)
    done = [span for span in spans if isinstance(span, _Span)]
    if len(done) < len(jobs):
        reasons = [span for span in spans if isinstance(span, str)]
        raise JobFailed(reasons[0] if reasons else "a process ended before its job was done")
    seconds = max(span.ended_at for span in done) - min(span.started_at for span in done)
    return Measurement(sum(span.message_count for span in done), seconds)


def _start(job: Job, barrier: Barrier) -> Connection:
    answer, outbox = _context.Pipe(duplex=False)
    _context.Process(target=_work, args=(job, barrier, outbox), daemon=True).start()
    outbox.close()  # The process has its own; when that closes too, receiving ends.
    return answer


def _collect(answers: Sequence[Connection], barrier: Barrier) -> list[_Span | str | None]:
    """The answers as they come. After a bad one nobody is to wait for the common start any longer."""
    spans: list[_Span | str | None] = []
    waiting = list(answers)
    while waiting:
        for answer in wait(waiting):
            assert isinstance(answer, Connection)
            waiting.remove(answer)
            spans.append(_receive(answer))
            if not isinstance(spans[-1], _Span):
                barrier.abort()
    return spans


def _receive(answer: Connection) -> _Span | str | None:
    with answer:
        try:
            received: _Span | str | None = answer.recv()
        except EOFError:
            return None
        return received


def _work(job: Job, barrier: Barrier, outbox: Connection) -> None:
    try:
        with job.prepared() as work:
            barrier.wait(_PREPARE_SECONDS)
            started_at = time.monotonic()
            message_count = work()
            span = _Span(started_at, time.monotonic(), message_count)
        # Only now, with its connections closed, so that the place can be dropped.
        outbox.send(span)
    except threading.BrokenBarrierError:
        outbox.send(None)  # Another job failed, and says why.
    except BaseException:
        outbox.send(traceback.format_exc())
