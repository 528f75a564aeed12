"""A run of a pipeline: known to Postgres while it lasts, stopped by a signal between two steps, ended with a state."""

from __future__ import annotations

import dataclasses
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from postbus.db import session
from postbus.model.errors import Conflict, Error
from postbus.pipelines.runtime.failures import in_short, is_of_spark
from postbus.pipelines.runtime.limits import BadLimit, parse_limit
from postbus.pipelines.runtime.progress import Show, Silence
from postbus.pipelines.runtime.statements import BEGIN_PIPELINE, END_PIPELINE, NOTE_PIPELINE, PLAN_PIPELINE

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Run:
    """What a pipeline tells of itself while it works, and how it learns that it is to stop."""

    def __init__(self, url: str, name: str, token: str, show: Show) -> None:
        self.url = url
        self.name = name
        self.done = 0
        self.aside = 0
        self.late = 0
        self._limit: BadLimit | None = None
        self._aside_stream = ""
        self._is_aside_done = False
        self._token = token
        self._show = show
        self._stop = threading.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether to end after this step."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End after this step."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Wait for more to do, or to be stopped."""
        self.note(0, self.done)
        self._stop.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Wait so long, or until it is to stop."""
        if seconds > 0:
            self._stop.wait(seconds)

    @property
    def token(self) -> str:
        """Names this run, and no other."""
        return self._token

    def plan(self, plan: dict[str, Any], *, anew: bool) -> dict[str, Any]:
        """What to do, as it was decided when the pipeline first began; with anew, and the first time, it is this plan.

        Raises:
            Conflict: Another run has taken this one's place.
        """
        with session.transaction(self.url) as database:
            found = database.value(PLAN_PIPELINE, (self.name, self._token, json.dumps(plan), anew))
        if found is None:
            raise self._replaced()
        return dict(found)

    def _replaced(self) -> Conflict:
        return Conflict(
            f'another run of pipeline "{self.name}" has begun', "this run stops; nothing was lost or duplicated"
        )

    def allow_aside(self, limit: str | None, into: str, *, is_done: bool) -> None:
        """Let so many rows go aside; is_done says whether `done` counts them too."""
        self._limit, self._aside_stream, self._is_aside_done = parse_limit(limit), into, is_done

    def check_aside(self, *, is_end: bool) -> None:
        """Fail if too many rows went aside.

        Raises:
            Conflict: There are more than the limit.
        """
        if self._limit is not None and self.aside:
            read = self.done if self._is_aside_done else self.done + self.aside
            self._limit.check(self.aside, read, self._aside_stream, is_end=is_end)

    def note(
        self, count: int, total: int | None, position: int | None = None, *, aside: int = 0, late: int = 0
    ) -> None:
        """Note that so many more messages are done, of about so many in this run; and how many went aside or were late.

        Raises:
            Conflict: Another run has taken this one's place, or too many rows went aside.
        """
        self.done += count
        self.aside += aside
        self.late += late
        self._show.update(self.done, total)
        with session.transaction(self.url) as database:
            noted = database.value(NOTE_PIPELINE, (self.name, self._token, count, total, position, aside, late))
        if not noted:
            raise self._replaced()
        self.check_aside(is_end=False)


@contextmanager
def running(
    url: str, name: str, kind: str, stream: str, options: Any, *, consumer: str | None = None, show: Show | None = None
) -> Iterator[Run]:
    """Run a pipeline: begin it, stop it at the first signal, and note how it ended.

    Args:
        url: The database.
        name: The pipeline's name: a run of the same name goes on where this one ends.
        kind: What it does: archive, replay, ….
        stream: The stream that it works on.
        options: The dataclass of its options, to be shown.
        consumer: The consumer whose lag is the pipeline's.
        show: Who shows its progress.
    """
    written = json.dumps(dataclasses.asdict(options), default=str)
    with session.transaction(url) as database:
        token = database.value(BEGIN_PIPELINE, (name, kind, stream, consumer, written))
    shown = show or Silence()
    run = Run(url, name, str(token), shown)
    state, reason = "failed", None
    shown.begin(name)
    try:
        with _stopping_at_signals(run):
            yield run
        run.check_aside(is_end=True)
        state = "stopped" if run.is_stopping else "done"
    except KeyboardInterrupt:
        state = "stopped"
        raise
    except Exception as error:
        shortened = in_short(error) if is_of_spark(error) else error
        reason = shortened.message if isinstance(shortened, Error) else f"{type(error).__name__}: {error}"[:2000]
        if shortened is error:
            raise
        raise shortened from error
    finally:
        shown.end(state)
        # The error that is on its way is the one to see, not that Postgres is gone too.
        with suppress(Error), session.transaction(url) as database:
            database.rows(END_PIPELINE, (name, run.token, state, reason))


@contextmanager
def _stopping_at_signals(run: Run) -> Iterator[None]:
    """The first signal ends the run after its step, the second at once. Only the main thread can be told of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        if run.is_stopping:
            raise KeyboardInterrupt
        run.stop()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
