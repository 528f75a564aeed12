"""The deliveries that a worker holds: their leases, which of them may start next, and which acks to send.

This module does no I/O. Threads share the inbox, so each method takes the lock for some microseconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Final

from postbus.model.consumer import Ordering
from postbus.model.delivery import Batch, Delivery
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.worker.tasks import Acks, Lease, Task

# A worker prefetches as much as it can handle in this time. The rest is left to other workers, and leases do not end while
# messages wait.
_PREFETCH_SECONDS: Final = 1.0
_MAX_PREFETCH: Final = 1000
# While handlers run, acks wait this long so that several are sent together.
_FLUSH_SECONDS: Final = 0.05
# After slots have been idle for this long, the worker receives more messages than it would otherwise hold.
_IDLE_SECONDS: Final = 0.1
# How long a cancelled handler may take to end.
_ENDING_SECONDS: Final = 5.0
# Weight of the newest message in the moving average of how long the handler takes.
_NEWEST_SHARE: Final = 0.1


class Inbox:
    """The deliveries of one worker.

    Args:
        order: The consumer's order.
        concurrency: How many may run at the same time.
        prefetch: How many more may wait at most. None: as many as are handled soon.
        ack_wait: How long a lease lasts, in seconds.
        handler_timeout: How long a handler may take, in seconds.
        has_levels: There are messages of several priorities, or channels take turns: it holds no more than can run. Once it
            has one of another priority than the default, it knows by itself.
    """

    def __init__(
        self,
        order: Ordering,
        *,
        concurrency: int,
        prefetch: int | None,
        ack_wait: float,
        handler_timeout: float | None,
        has_levels: bool = False,
    ) -> None:
        self._order = order
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._ack_wait = ack_wait
        self._timeout = float("inf") if handler_timeout is None else handler_timeout
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}
        # By priority: what waits in the worker starts by level.
        self._ready: list[deque[Task]] = [deque() for _ in range(10)]
        self._has_levels = has_levels
        # Tasks that wait for an earlier task of their lane.
        self._lanes: dict[Hashable, deque[Task]] = {}
        self._running: set[Task] = set()
        self._slots_used = 0
        self._open_count = 0
        self._ack_count = 0
        self._acks_since = 0.0
        self._handler_seconds: float | None = None
        self._starved_since: float | None = None
        self._is_closed = False

    # For the receive loop.

    def capacity(self) -> int:
        """How many messages to receive now; 0 while the worker has enough."""
        with self._lock:
            return self._capacity()

    def flush_in(self) -> float | None:
        """In how many seconds acks have to be sent; None if there are none."""
        with self._lock:
            if not self._ack_count:
                return None
            if not self._open_count:
                return 0.0
            return max(0.0, self._acks_since + _FLUSH_SECONDS - time.monotonic())

    def capacity_in(self) -> float | None:
        """In how many seconds there may be capacity if nothing else happens; None if never."""
        with self._lock:
            if self._capacity():
                return 0.0
            since = self._starved_since
            return None if since is None else max(0.0, since + _IDLE_SECONDS - time.monotonic())

    def is_empty(self) -> bool:
        """Whether no task waits or runs, and no ack has to be sent."""
        with self._lock:
            return not self._open_count and not self._ack_count

    def running_count(self) -> int:
        with self._lock:
            return self._slots_used

    def add(self, batch: Batch, asked_at: float) -> None:
        """Add a batch that was requested at that time."""
        with self._lock:
            for delivery in batch:
                token = delivery.ack_id.rpartition("-")[0]
                lease = self._leases.get(token)
                if lease is None:
                    lease = Lease(token, asked_at + self._ack_wait, asked_at + self._ack_wait / 3)
                    self._leases[token] = lease
                task = Task(delivery, lease, self._lane_of(delivery))
                lease.tasks.append(task)
                lease.open_count += 1
                self._open_count += 1
                self._has_levels = self._has_levels or delivery.priority != DEFAULT_PRIORITY
                self._line_up(task)

    def take_acks(self) -> Acks | None:
        """The acks to send now. Call `acks_sent` or `acks_failed` afterwards."""
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

    def acks_sent(self, acks: Acks) -> None:
        with self._lock:
            for lease, done in acks.leases:
                lease.sending_count -= len(done)
                self._forget_if_over(lease)

    def acks_failed(self, acks: Acks) -> None:
        """Queue the acks again: they may or may not have arrived, and sending them twice does no harm."""
        with self._lock:
            for lease, done in acks.leases:
                lease.sending_count -= len(done)
                lease.done = done + lease.done
            self._ack_count += acks.count
            self._acks_since = time.monotonic()

    def withdraw(self, *, running: bool = False) -> list[Task]:
        """Remove and return all tasks that wait, or also those that run. No task starts from now on."""
        with self._lock:
            self._is_closed = True
            states = ("waiting", "running") if running else ("waiting",)
            tasks = [task for lease in self._leases.values() for task in lease.tasks if task.state in states]
            for task in tasks:
                self._end(task)
            return [task for task in tasks if not task.is_lost]

    # For the handler slots.

    def start_next(self) -> Task | None:
        """The next task to run, if there is one and a free slot."""
        with self._lock:
            if self._is_closed or self._slots_used >= self._concurrency:
                return None
            now = time.monotonic()
            for ready in reversed(self._ready):
                for _ in range(len(ready)):
                    task = ready.popleft()
                    if task.state == "over":
                        self._free(task)
                    elif now >= task.lease.until:
                        ready.append(task)  # Its lease may have ended. The next heartbeat will tell.
                    else:
                        task.state = "running"
                        task.started_at = now
                        task.deadline = now + self._timeout
                        self._running.add(task)
                        self._slots_used += 1
                        return task
            return None

    def finish(self, task: Task) -> bool:
        """Note that a handler has ended. False if the task was given up before, so that its outcome does not matter."""
        with self._lock:
            if task.state != "running":
                return False
            task.state = "finished"
            self._running.discard(task)
            seconds = time.monotonic() - task.started_at
            known = self._handler_seconds
            self._handler_seconds = seconds if known is None else known + _NEWEST_SHARE * (seconds - known)
            return True

    def queue_ack(self, task: Task) -> bool:
        """Queue the ack of a task. Returns whether the receive loop should be woken."""
        with self._lock:
            was = self._capacity()
            task.lease.done.append(task.delivery.ack_id)
            self._ack_count += 1
            if self._ack_count == 1:
                self._acks_since = time.monotonic()
            self._leave_slot(task)
            return self._ack_count == 1 or not self._open_count or (not was and self._capacity() > 0)

    def remove(self, task: Task) -> None:
        """Remove a task whose delivery was acked, nacked or rejected already, or is lost."""
        with self._lock:
            task.lease.is_whole = False
            self._leave_slot(task)
            self._forget_if_over(task.lease)

    def later_tasks(self, task: Task) -> list[Task]:
        """The tasks of the same lane and lease that wait for this one."""
        with self._lock:
            if task.lane is None:
                return []
            return [other for other in self._lanes[task.lane] if other.lease is task.lease and other.state == "waiting"]

    def drop(self, tasks: Iterable[Task]) -> None:
        """Remove tasks that wait: their deliveries are no longer leased to this worker."""
        with self._lock:
            for task in tasks:
                if task.state == "waiting":
                    self._end(task)

    # For the heartbeat.

    def next_event_at(self) -> float:
        """When a lease has to be extended or a handler may be overdue."""
        with self._lock:
            times = [lease.extend_at for lease in self._leases.values()]
            times += [task.deadline for task in self._running]
            now = time.monotonic()
            return min([*times, now + self._ack_wait / 3, now + self._timeout])

    def overdue_tasks(self) -> list[Task]:
        """Tasks whose handler has taken too long. A handler that ignores its cancellation is reported again later."""
        with self._lock:
            now = time.monotonic()
            found = [task for task in self._running if now >= task.deadline]
            for task in found:
                task.deadline = now + _ENDING_SECONDS
            return found

    def due_leases(self) -> list[Lease]:
        """Leases that have to be extended now."""
        with self._lock:
            now = time.monotonic()
            return [lease for lease in self._leases.values() if now >= lease.extend_at]

    def note_extended(self, leases: Iterable[Lease], asked_at: float) -> None:
        with self._lock:
            for lease in leases:
                lease.until = asked_at + self._ack_wait
                lease.extend_at = asked_at + self._ack_wait / 3

    def held_count(self, lease: Lease) -> int:
        """How many deliveries of a lease must still be leased, because nobody has acked or nacked them."""
        with self._lock:
            open_count = sum(task.state in ("waiting", "running") and not task.is_lost for task in lease.tasks)
            return len(lease.done) + open_count

    def held_tasks(self, lease: Lease) -> list[Task]:
        """The tasks of a lease that wait or run."""
        with self._lock:
            return [task for task in lease.tasks if task.state in ("waiting", "running") and not task.is_lost]

    def mark_lost(self, tasks: Iterable[Task]) -> list[Task]:
        """Their leases have ended: remove those that wait, and return those that run."""
        with self._lock:
            running = []
            for task in tasks:
                if task.state in ("waiting", "running") and not task.is_lost:
                    task.is_lost = True
                    task.lease.is_whole = False
                    if task.state == "waiting":
                        self._end(task)
                    else:
                        running.append(task)
            return running

    def _lane_of(self, delivery: Delivery) -> Hashable:
        if self._order == "key":
            return delivery.key
        return delivery.partition if self._order == "partition" else None

    def _line_up(self, task: Task) -> None:
        if task.lane is None:
            self._make_ready(task)
        elif task.lane in self._lanes:
            self._lanes[task.lane].append(task)
        else:
            self._lanes[task.lane] = deque()
            self._make_ready(task)

    def _make_ready(self, task: Task) -> None:
        self._ready[task.delivery.priority].append(task)

    def _free(self, task: Task) -> None:
        """Let the next task of a lane start."""
        if task.lane is None:
            return
        behind = self._lanes[task.lane]
        while behind:
            following = behind.popleft()
            if following.state == "waiting":
                self._make_ready(following)
                return
        del self._lanes[task.lane]

    def _leave_slot(self, task: Task) -> None:
        if task.state == "finished":
            task.state = "over"
            task.lease.open_count -= 1
            self._open_count -= 1
        self._slots_used -= 1
        self._free(task)

    def _end(self, task: Task) -> None:
        """End a task that waits, or abandon one that runs."""
        self._running.discard(task)
        task.state = "over"
        task.lease.is_whole = False
        task.lease.open_count -= 1
        self._open_count -= 1
        self._forget_if_over(task.lease)

    def _forget_if_over(self, lease: Lease) -> None:
        if not lease.open_count and not lease.done and not lease.sending_count:
            self._leases.pop(lease.token, None)

    def _capacity(self) -> int:
        target = self._concurrency + self._prefetch_limit()
        capacity = target - self._open_count
        if capacity > 0 and (
            self._open_count <= self._slots_used or (self._order == "none" and capacity >= target / 2)
        ):
            self._starved_since = None
            # In the other orders, held messages lock their keys. 20,000 messages of 50 keys took 0.9 s instead of 2.4 s when the
            # worker received more only after it had started the last one.
            return capacity
        idle = self._concurrency - self._slots_used
        if idle <= 0 or any(self._ready) or self._open_count >= 4 * target:
            self._starved_since = None
            return 0
        # All waiting tasks are behind running ones of their lane. Messages of other lanes could run.
        now = time.monotonic()
        if self._starved_since is None:
            self._starved_since = now
        return max(capacity, idle, target // 4) if now >= self._starved_since + _IDLE_SECONDS else 0

    def _prefetch_limit(self) -> int:
        """How many messages may be prefetched."""
        most = _MAX_PREFETCH if self._prefetch is None else self._prefetch
        if self._handler_seconds is None or self._has_levels:
            # An urgent message that is published now, or one of another tenant, does not wait behind what is here already.
            return 0
        seconds = min(_PREFETCH_SECONDS, self._ack_wait / 3)
        return min(most, int(self._concurrency * seconds / max(self._handler_seconds, 1e-6)))
