"""What a target of materialize has taken of a step, before it counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Taken:
    """So many messages, of which some are no changes; the first such, and why."""

    count: int
    bad: int
    bad_seq: int | None = None
    problem: str | None = None
