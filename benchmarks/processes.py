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
from typing import Any, Final, Generic, Protocol, TypeVar

from benchmarks.comparison import Measurement

_PREPARE_SECONDS: Final = 600.0
_context: Final = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["benchmarks.systems"])

_Result_co = TypeVar("_Result_co", covariant=True)


class Job(Protocol[_Result_co]):
    """Work for one process. It is pickled on its way there."""

    def prepared(self) -> AbstractContextManager[Callable[[], _Result_co]]:
        """Connect and warm up; the result does the work to be measured and returns what is to be known of it."""


class JobFailed(RuntimeError):
    """A job raised, or its process ended."""


@dataclass(frozen=True, slots=True)
class Span(Generic[_Result_co]):
    """When a job worked, and what it returned. The monotonic clock is one for all processes of a machine."""

    started_at: float
    ended_at: float
    result: _Result_co


def run_together(jobs: Sequence[Job[int]]) -> Measurement:
    """Run jobs that return how many messages they did: all of them, in the time from the start to the last one's end."""
    spans = run_jobs(jobs)
    seconds = max(span.ended_at for span in spans) - min(span.started_at for span in spans)
    return Measurement(sum(span.result for span in spans), seconds)


def run_jobs(jobs: Sequence[Job[_Result_co]]) -> list[Span[_Result_co]]:
    """Run the jobs, which start together once all are prepared; their spans in the same order.

    Raises:
        JobFailed: The message holds the traceback of the job that failed first.
    """
    barrier = _context.Barrier(len(jobs))
    answers = [_start(job, barrier) for job in jobs]
    spans, reasons = _collect(answers, barrier)
    if len(spans) < len(jobs):
        raise JobFailed(reasons[0] if reasons else "a process ended before its job was done")
    return [spans[answer] for answer in answers]


def _start(job: Job[Any], barrier: Barrier) -> Connection:
    answer, outbox = _context.Pipe(duplex=False)
    _context.Process(target=_work, args=(job, barrier, outbox), daemon=True).start()
    outbox.close()  # The process has its own; when that closes too, receiving ends.
    return answer


def _collect(answers: Sequence[Connection], barrier: Barrier) -> tuple[dict[Connection, Span[Any]], list[str]]:
    """The answers as they come, and why others failed. After a bad one nobody is to wait for the common start any longer."""
    spans: dict[Connection, Span[Any]] = {}
    reasons: list[str] = []
    waiting = list(answers)
    while waiting:
        for answer in wait(waiting):
            assert isinstance(answer, Connection)
            waiting.remove(answer)
            received = _receive(answer)
            if isinstance(received, Span):
                spans[answer] = received
                continue
            barrier.abort()
            if received is not None:
                reasons.append(received)
    return spans, reasons


def _receive(answer: Connection) -> Span[Any] | str | None:
    with answer:
        try:
            received: Span[Any] | str | None = answer.recv()
        except EOFError:
            return None
        return received


def _work(job: Job[Any], barrier: Barrier, outbox: Connection) -> None:
    try:
        with job.prepared() as work:
            barrier.wait(_PREPARE_SECONDS)
            started_at = time.monotonic()
            result = work()
            span = Span(started_at, time.monotonic(), result)
        # Only now, with its connections closed, so that the place can be dropped.
        outbox.send(span)
    except threading.BrokenBarrierError:
        outbox.send(None)  # Another job failed, and says why.
    except BaseException:
        outbox.send(traceback.format_exc())
