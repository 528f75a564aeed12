"""What is known of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PipelineState = Literal["running", "done", "stopped", "failed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInfo:
    """A pipeline, and how it is getting on.

    Attributes:
        name: Its name, such as "archive orders". A run of that name goes on where the last one ended.
        kind: What it does: archive, replay, compact, ingest, backfill, ….
        stream: The stream that it works on.
        state: running, done, stopped (by a signal), failed, or lost: it was running, and has said nothing for a minute.
        message_count: How many messages it has done in all its runs,
        run_count: in the last one,
        total_estimate: of about so many.
        rate: Messages per second of the last run.
        lag_estimate: How many messages are left for a pipeline that follows its stream; None for one that has an end.
        position_seq: How far it is.
        last_error: Why the last run failed.
        started_at: When the last run began.
        noted_at: When it last said how far it is.
        ended_at: When it ended.
        aside_count: What it could not publish in all its runs, and has put into another stream with the reason.
        late_count: Rows that a watermark has dropped in all its runs, because they came too late.
    """

    name: str
    kind: str
    stream: str
    state: PipelineState
    message_count: int
    run_count: int
    total_estimate: int | None
    rate: float
    lag_estimate: int | None
    position_seq: int | None
    last_error: str | None
    started_at: datetime
    noted_at: datetime
    ended_at: datetime | None
    aside_count: int = 0
    late_count: int = 0
