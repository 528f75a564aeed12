"""Reading through a place page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

from benchmarks.comparison import Measurement
from benchmarks.processes import run_together
from benchmarks.systems.base import ReadingSystem

_WARM_UP_PAGES: Final = 12


@dataclass(frozen=True, slots=True)
class ReadJob:
    system: ReadingSystem
    url: str
    place: str
    page_size: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with self.system.open_reader(self.url) as reader:
            for _ in islice(reader.pages(self.place, self.page_size), _WARM_UP_PAGES):
                pass
            yield lambda: sum(reader.pages(self.place, self.page_size))


def read(system: ReadingSystem, url: str, place: str, *, page_size: int, message_count: int) -> Measurement:
    """One reader's way through a place that holds so many messages.

    Raises:
        RuntimeError: It found another number.
    """
    measurement = run_together([ReadJob(system, url, place, page_size)])
    if measurement.message_count != message_count:
        raise RuntimeError(f"{system.name} holds {message_count} messages and gave {measurement.message_count}")
    return measurement
