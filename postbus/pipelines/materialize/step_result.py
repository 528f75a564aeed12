"""The result of one step of materialize, before it is committed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepResult:
    """How many messages were read, how many of them were not valid changes, and the first of those with its error."""

    count: int
    bad: int
    bad_seq: int | None = None
    problem: str | None = None
