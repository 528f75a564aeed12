"""What a worker has in hand: its deliveries and their leases, which may start next, and which acks are to be sent.

No I/O. Threads share it, so each method holds the lock, for microseconds; tasks do not mind.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from postbus.model.consumer import Ordering
from postbus.model.delivery import Batch, Delivery

# A worker takes what it can do in this time, so that others find something to do, and what it took is done before its lease ends.
_PREFETCH_SECONDS: Final = 1.0
_MOST_IN_HAND: Final = 1000
# Acks wait this long for company, if something is still being handled.
_FLUSH_SECONDS: Final = 0.05
# Slots are idle for this long before more is received for them than was meant to be in hand.
_IDLE_SECONDS: Final = 0.1
# How long a handler that was told to end may take to do so.
_ENDING_SECONDS: Final = 5.0
# How much one more message changes what is known of how long the handler takes.
_NEWEST_SHARE: Final = 0.1

State = Literal["waiting", "running", "settling", "over"]


@dataclass(slots=True, eq=False)
class Lease:
    """A lease in hand.

    Attributes:
        token: Names it.
        until: When it ends, in our clock; rather too early than too late.
        beat_at: When it is to be extended.
        jobs: Its messages.
        open_count: How many of them are not over.
        done: The ack ids that are to be sent.
        sending_count: How many acks are on their way.
        is_whole: Whether all that ended so far is acked by us, so that the token alone may be sent.
    """

    token: str
    until: float
    beat_at: float
    jobs: list[Job] = field(default_factory=list)
    open_count: int = 0
    done: list[str] = field(default_factory=list)
    sending_count: int = 0
    is_whole: bool = True


@dataclass(slots=True, eq=False)
class Job:
    """A delivery in hand.

    Attributes:
        delivery: It.
        lease: Its lease.
        lane: What it shares with those that must not run at the same time; None if nothing.
        state: How far it is.
        started_at: When its handler was started.
        deadline: When its handler has taken too long.
        is_lost: Whether its lease has ended: what the handler does is for nothing.
        is_interrupted: Whether its handler was told to end.
        task: What runs its handler, if that can be told.
        connection: The connection of its transaction.
        is_concluded: Whether the slot that runs it has said so, and settles it.
    """

    delivery: Delivery
    lease: Lease
    lane: Hashable
    state: State = "waiting"
    started_at: float = 0.0
    deadline: float = float("inf")
    is_lost: bool = False
    is_interrupted: bool = False
    task: Any = None
    connection: Any = None
    is_concluded: bool = False


@dataclass(frozen=True, slots=True)
class Acks:
    """Acks that are on their way: by lease, with the ids that stand for them."""

    ids: list[str]
    count: int
    leases: list[tuple[Lease, list[str]]]


class Hand:
    """The deliveries that a worker has.

    Args:
        order: The consumer's order.
        concurrency: How many may run at the same time.
        prefetch: How many may wait besides them at most; None for what is done soon.
        ack_wait: How long a lease lasts, in seconds.
        handler_timeout: How long a handler may take, in seconds.
    """

    def __init__(
        self, order: Ordering, *, concurrency: int, prefetch: int | None, ack_wait: float, handler_timeout: float | None
    ) -> None:
        self._order = order
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._ack_wait = ack_wait
        self._timeout = float("inf") if handler_timeout is None else handler_timeout
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}
        self._ready: deque[Job] = deque()
        # What waits behind a message of its lane that is ready or runs.
        self._lanes: dict[Hashable, deque[Job]] = {}
        self._running: set[Job] = set()
        self._slots_used = 0
        self._open_count = 0
        self._ack_count = 0
        self._acks_since = 0.0
        self._handler_seconds: float | None = None
        self._starved_since: float | None = None
        self._is_closed = False

    # What the clerk asks.

    def room(self) -> int:
        """How many messages to receive now; 0 while there is enough to do."""
        with self._lock:
            return self._room()

    def flush_in(self) -> float | None:
        """In how many seconds acks are to be sent at the latest; None if there are none."""
        with self._lock:
            if not self._ack_count:
                return None
            if not self._open_count:
                return 0.0
            return max(0.0, self._acks_since + _FLUSH_SECONDS - time.monotonic())

    def room_in(self) -> float | None:
        """In how many seconds there may be room, if nothing happens before; None if there will be none."""
        with self._lock:
            if self._room():
                return 0.0
            since = self._starved_since
            return None if since is None else max(0.0, since + _IDLE_SECONDS - time.monotonic())

    def is_empty(self) -> bool:
        """Whether nothing waits or runs, and no ack is to be sent."""
        with self._lock:
            return not self._open_count and not self._ack_count

    def running_count(self) -> int:
        with self._lock:
            return self._slots_used

    def take(self, batch: Batch, asked_at: float) -> None:
        """Add what was received by a call that was made at that time."""
        with self._lock:
            for delivery in batch:
                token = delivery.ack_id.rpartition("-")[0]
                lease = self._leases.get(token)
                if lease is None:
                    lease = Lease(token, asked_at + self._ack_wait, asked_at + self._ack_wait / 3)
                    self._leases[token] = lease
                job = Job(delivery, lease, self._lane_of(delivery))
                lease.jobs.append(job)
                lease.open_count += 1
                self._open_count += 1
                self._line_up(job)

    def take_acks(self) -> Acks | None:
        """The acks to be sent now; say `sent` or `not_sent` afterwards."""
        with self._lock:
            if not self._ack_count:
                return None
            ids: list[str] = []
            leases = []
            for lease in self._leases.values():
                if lease.done:
                    done, lease.done = lease.done, []
                    lease.sending_count += len(done)
                    ids += [lease.token] if lease.is_whole and not lease.open_count else done
                    leases.append((lease, done))
            acks = Acks(ids, self._ack_count, leases)
            self._ack_count = 0
            return acks

    def sent(self, acks: Acks) -> None:
        with self._lock:
            for lease, done in acks.leases:
                lease.sending_count -= len(done)
                self._forget_if_over(lease)

    def not_sent(self, acks: Acks) -> None:
        """They may or may not have arrived. Sending them once more does no harm."""
        with self._lock:
            for lease, done in acks.leases:
                lease.sending_count -= len(done)
                lease.done = done + lease.done
            self._ack_count += acks.count
            self._acks_since = time.monotonic()

    def give_back(self, *, running: bool = False) -> list[Job]:
        """Take out all that waits, or also what runs. Nothing starts any more."""
        with self._lock:
            self._is_closed = True
            states = ("waiting", "running") if running else ("waiting",)
            jobs = [job for lease in self._leases.values() for job in lease.jobs if job.state in states]
            for job in jobs:
                self._end(job)
            return [job for job in jobs if not job.is_lost]

    # What a slot asks.

    def start(self) -> Job | None:
        """The next delivery to handle, if there is one and a free slot."""
        with self._lock:
            if self._is_closed or self._slots_used >= self._concurrency:
                return None
            now = time.monotonic()
            for _ in range(len(self._ready)):
                job = self._ready.popleft()
                if job.state == "over":
                    self._free(job)
                elif now >= job.lease.until:
                    self._ready.append(job)  # Its lease may have ended. The next heartbeat says.
                else:
                    job.state = "running"
                    job.started_at = now
                    job.deadline = now + self._timeout
                    self._running.add(job)
                    self._slots_used += 1
                    return job
            return None

    def conclude(self, job: Job) -> bool:
        """Whether the outcome of a handler is wanted: not if the delivery was given up meanwhile and another slot goes on."""
        with self._lock:
            if job.state != "running":
                return False
            job.state = "settling"
            self._running.discard(job)
            seconds = time.monotonic() - job.started_at
            known = self._handler_seconds
            self._handler_seconds = seconds if known is None else known + _NEWEST_SHARE * (seconds - known)
            return True

    def acked(self, job: Job) -> bool:
        """A delivery is done and its ack to be sent. Returns whether the clerk should know."""
        with self._lock:
            was = self._room()
            job.lease.done.append(job.delivery.ack_id)
            self._ack_count += 1
            if self._ack_count == 1:
                self._acks_since = time.monotonic()
            self._leave_slot(job)
            return self._ack_count == 1 or not self._open_count or (not was and self._room() > 0)

    def ended(self, job: Job) -> None:
        """A delivery is over otherwise: settled already, or lost."""
        with self._lock:
            job.lease.is_whole = False
            self._leave_slot(job)
            self._forget_if_over(job.lease)

    def behind(self, job: Job) -> list[Job]:
        """What waits in the lane of a delivery and came with it."""
        with self._lock:
            if job.lane is None:
                return []
            return [other for other in self._lanes[job.lane] if other.lease is job.lease and other.state == "waiting"]

    def drop(self, jobs: Iterable[Job]) -> None:
        """Deliveries that wait are not ours any more."""
        with self._lock:
            for job in jobs:
                if job.state == "waiting":
                    self._end(job)

    # What the minder asks.

    def next_event_at(self) -> float:
        """When something has to be looked at, as far as is known now."""
        with self._lock:
            times = [lease.beat_at for lease in self._leases.values()]
            times += [job.deadline for job in self._running]
            now = time.monotonic()
            return min([*times, now + self._ack_wait / 3, now + self._timeout])

    def overdue(self) -> list[Job]:
        """Those whose handler has taken too long. One that is told to end and does not is named again later."""
        with self._lock:
            now = time.monotonic()
            found = [job for job in self._running if now >= job.deadline]
            for job in found:
                job.deadline = now + _ENDING_SECONDS
            return found

    def due_leases(self) -> list[Lease]:
        """Those that are to be extended."""
        with self._lock:
            now = time.monotonic()
            return [lease for lease in self._leases.values() if now >= lease.beat_at]

    def extended(self, leases: Iterable[Lease], asked_at: float) -> None:
        with self._lock:
            for lease in leases:
                lease.until = asked_at + self._ack_wait
                lease.beat_at = asked_at + self._ack_wait / 3

    def held_count(self, lease: Lease) -> int:
        """How many messages of a lease nobody can have settled yet."""
        with self._lock:
            open_count = sum(job.state in ("waiting", "running") and not job.is_lost for job in lease.jobs)
            return len(lease.done) + open_count

    def held(self, lease: Lease) -> list[Job]:
        """Those that wait or run."""
        with self._lock:
            return [job for job in lease.jobs if job.state in ("waiting", "running") and not job.is_lost]

    def lose(self, jobs: Iterable[Job]) -> list[Job]:
        """Their leases have ended: forget what waits, and return what runs."""
        with self._lock:
            running = []
            for job in jobs:
                if job.state in ("waiting", "running") and not job.is_lost:
                    job.is_lost = True
                    job.lease.is_whole = False
                    if job.state == "waiting":
                        self._end(job)
                    else:
                        running.append(job)
            return running

    def _lane_of(self, delivery: Delivery) -> Hashable:
        if self._order == "key":
            return delivery.key
        return delivery.partition if self._order == "partition" else None

    def _line_up(self, job: Job) -> None:
        if job.lane is None:
            self._ready.append(job)
        elif job.lane in self._lanes:
            self._lanes[job.lane].append(job)
        else:
            self._lanes[job.lane] = deque()
            self._ready.append(job)

    def _free(self, job: Job) -> None:
        """The lane of a delivery may go on."""
        if job.lane is None:
            return
        behind = self._lanes[job.lane]
        while behind:
            following = behind.popleft()
            if following.state == "waiting":
                self._ready.append(following)
                return
        del self._lanes[job.lane]

    def _leave_slot(self, job: Job) -> None:
        if job.state == "settling":
            job.state = "over"
            job.lease.open_count -= 1
            self._open_count -= 1
        self._slots_used -= 1
        self._free(job)

    def _end(self, job: Job) -> None:
        """Without a slot: it waits no more, or is abandoned as it runs."""
        self._running.discard(job)
        job.state = "over"
        job.lease.is_whole = False
        job.lease.open_count -= 1
        self._open_count -= 1
        self._forget_if_over(job.lease)

    def _forget_if_over(self, lease: Lease) -> None:
        if not lease.open_count and not lease.done and not lease.sending_count:
            self._leases.pop(lease.token, None)

    def _room(self) -> int:
        target = self._concurrency + self._ahead()
        room = target - self._open_count
        if room > 0 and (self._open_count <= self._slots_used or (self._order == "none" and room >= target / 2)):
            self._starved_since = None
            # In the other orders what is in hand keeps its keys from what is received meanwhile: 2.4 s became 0.9 s for 20,000
            # messages of 50 keys when the next were received after the last had been started.
            return room
        idle = self._concurrency - self._slots_used
        if idle <= 0 or self._ready or self._open_count >= 4 * target:
            self._starved_since = None
            return 0
        # What waits is behind what runs. Others could run meanwhile.
        now = time.monotonic()
        if self._starved_since is None:
            self._starved_since = now
        return max(room, idle, target // 4) if now >= self._starved_since + _IDLE_SECONDS else 0

    def _ahead(self) -> int:
        """How many messages may wait besides those that run."""
        most = _MOST_IN_HAND if self._prefetch is None else self._prefetch
        if self._handler_seconds is None:
            return 0
        seconds = min(_PREFETCH_SECONDS, self._ack_wait / 3)
        return min(most, int(self._concurrency * seconds / max(self._handler_seconds, 1e-6)))
