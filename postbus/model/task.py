"""What is known of a task in the background."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

TaskKind = Literal["redrive", "discard", "replay", "move"]
TaskState = Literal["running", "done", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A redrive, discard, replay or move in the background, and how far it is.

    Attributes:
        id: Its number.
        stream: The stream.
        consumer: The consumer whose dead letters or messages it moves, or to whom it replays.
        kind: redrive, discard, replay or move.
        state: running, done, cancelled or failed.
        done_count: How many messages it has moved,
        total_estimate: of about so many; None if that is not known.
        rate: The largest number of messages per second; None sets no limit.
        key_pattern: Only messages whose key matches.
        reason_like: Only dead letters whose reason matches.
        to_stream: The stream that it publishes to.
        last_error: Why it failed.
        created_by: The role that started it.
        created_at: When it was started.
        noted_at: When it last did a step.
        ended_at: When it ended.
    """

    id: int
    stream: str
    consumer: str
    kind: TaskKind
    state: TaskState
    done_count: int
    total_estimate: int | None
    rate: float | None
    key_pattern: str | None
    reason_like: str | None
    to_stream: str | None
    last_error: str | None
    created_by: str
    created_at: datetime
    noted_at: datetime
    ended_at: datetime | None
