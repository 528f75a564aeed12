"""What a worker holds: leases, their deliveries, and acks that are being sent."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from postbus.model.delivery import Delivery
from postbus.model.outcome import Defer

State = Literal["waiting", "running", "finished", "over"]


@dataclass(slots=True, eq=False)
class Lease:
    """A lease that the worker holds.

    Attributes:
        token: Its name.
        until: When it ends, by the clock of this process. The estimate errs on the early side.
        extend_at: When the heartbeat extends it.
        tasks: Its deliveries.
        open_count: How many of them are not over.
        done: Ack ids that have to be sent.
        sending_count: How many acks are being sent.
        is_whole: All tasks that are over were acked, so the token alone may stand for all of their ack ids.
    """

    token: str
    until: float
    extend_at: float
    tasks: list[Task] = field(default_factory=list)
    open_count: int = 0
    done: list[str] = field(default_factory=list)
    sending_count: int = 0
    is_whole: bool = True


@dataclass(slots=True, eq=False)
class Task:
    """A delivery that the worker holds.

    Attributes:
        delivery: The delivery.
        lease: Its lease.
        lane: Tasks of the same lane must not run at the same time. None: it may run at any time.
        state: Waiting for a slot; running; finished, with its outcome being recorded; or over.
        started_at: When its handler was started.
        deadline: When its handler has taken too long.
        is_lost: Its lease has ended, so nobody wants the outcome.
        is_cancelled: Its handler was cancelled.
        runner: The asyncio task that runs its handler; None in a thread, which cannot be cancelled.
        connection: The connection of its transaction.
        is_finished: Its handler has finished inside its transaction, and the ack or deferral is part of it.
        deferral: What its handler has returned, if that defers it.
    """

    delivery: Delivery
    lease: Lease
    lane: Hashable
    state: State = "waiting"
    started_at: float = 0.0
    deadline: float = float("inf")
    is_lost: bool = False
    is_cancelled: bool = False
    runner: Any = None
    connection: Any = None
    is_finished: bool = False
    deferral: Defer | None = None


@dataclass(frozen=True, slots=True)
class Acks:
    """Acks that are being sent: the ids to send, and the ack ids of each lease that they stand for."""

    ids: list[str]
    count: int
    leases: list[tuple[Lease, list[str]]]
