"""The backend of Django's tasks: a task is a message of a queue, published in the transaction that enqueues it."""

from __future__ import annotations

from typing import Any, Final

from django.core import checks
from django.db import connections
from django.utils import timezone
from django.utils.crypto import get_random_string

from postbus.contrib.django import records
from postbus.contrib.django.database import database_alias
from postbus.contrib.django.publishing import publish
from postbus.contrib.django.tasks_api import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)

_ID_LENGTH: Final = 32
_RESULT: Final = "select data from postbus.state(%s, key => %s)"


class PostbusBackend(BaseTaskBackend):
    """Tasks in queues of Postbus.

    Options:
        max_attempts: How often a task is run that raises; 1 by default. Afterwards it is a dead letter, to be redriven.
        keep_results: For how many seconds results are kept, for `get_result`. By default they are not.
        prefix: What the names of queues begin with; "tasks-" by default.
        database: The alias of the database; by default the one that has Postbus.
    """

    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = dict(self.options)
        self.max_attempts: int = options.pop("max_attempts", 1)
        self.keep_results: float | None = options.pop("keep_results", None)
        self.prefix: str = options.pop("prefix", "tasks-")
        self.database: str = options.pop("database", None) or database_alias()
        self.unknown_options = sorted(options)
        self.supports_get_result = self.keep_results is not None

    @property
    def results(self) -> str:
        """The stream of results."""
        return f"{self.prefix}results"

    def queue_of(self, name: str) -> str:
        """The queue of Postbus for a queue name of Django."""
        return f"{self.prefix}{name}"

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """What is wrong with the settings."""
        found: list[checks.CheckMessage] = list(super().check(**kwargs))
        if connections[self.database].vendor != "postgresql":
            found.append(
                checks.Error(
                    f'TASKS["{self.alias}"] needs PostgreSQL in the database "{self.database}"', id="postbus.E001"
                )
            )
        if self.unknown_options:
            names = ", ".join(self.unknown_options)
            found.append(
                checks.Error(
                    f'TASKS["{self.alias}"] has unknown options: {names}',
                    hint="there are: max_attempts, keep_results, prefix, database",
                    id="postbus.E002",
                )
            )
        return found

    def enqueue(self, task: Task[Any, Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        """Publish a task, in the current transaction."""
        self.validate_task(task)
        result = TaskResult(
            task=task,
            id=get_random_string(_ID_LENGTH),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=list(args),
            kwargs=dict(kwargs),
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        self.note(result)
        publish(
            self.queue_of(task.queue_name),
            records.as_data(result),
            deliver_at=task.run_after,
            priority=priority_of(task.priority),
            using=self.database,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def note(self, result: TaskResult[Any]) -> None:
        """Publish how far a task is, if results are kept."""
        if self.keep_results is not None:
            publish(self.results, records.as_data(result), key=result.id, using=self.database)

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """How far a task is.

        Raises:
            TaskResultDoesNotExist: There is none, or it was kept long enough.
        """
        if self.keep_results is None:
            return super().get_result(result_id)
        with connections[self.database].cursor() as cursor:
            cursor.execute(_RESULT, [self.results, result_id])
            found = cursor.fetchone()
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return records.as_result(found[0])


def priority_of(priority: int) -> int | None:
    """One of ten levels for a priority of Django, which is -100 to 100; None for the usual one."""
    if priority == 0:
        return None
    return 4 + -(-priority * 5 // 100) if priority > 0 else 4 + priority * 4 // 100
