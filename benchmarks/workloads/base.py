"""A workload: one question, and how to set up the comparisons that answer it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks import server
from benchmarks.comparison import Comparison
from benchmarks.systems.base import System


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a workload runs and how thorough it is to be. Quick runs show that it works, not how fast anything is.

    Without a number of rounds, each comparison has its own.
    """

    server_url: str
    rounds: int | None
    quick: bool

    def database(self, *systems: System) -> AbstractContextManager[str]:
        """The URL of a new database with these systems in it."""
        return server.database(self.server_url, *systems)

    def size(self, full: int, *, quick: int) -> int:
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Workload:
    """A question.

    Attributes:
        name: As given on the command line.
        question: One sentence.
        prepare: Sets everything up, gives the comparisons to run, and clears up.
    """

    name: str
    question: str
    prepare: Callable[[Bench], AbstractContextManager[tuple[Comparison, ...]]]
