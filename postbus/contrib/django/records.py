"""Results of tasks as the data of messages, and back."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from django.utils.module_loading import import_string

from postbus.contrib.django.tasks_api import Task, TaskError, TaskResult, TaskResultStatus

_TIMES: Final = ("enqueued_at", "started_at", "finished_at", "last_attempted_at")


def as_data(result: TaskResult[Any]) -> dict[str, Any]:
    """The data of a message from which `as_result` makes the same."""
    task = result.task
    times = {name: value.isoformat() for name in _TIMES if (value := getattr(result, name)) is not None}
    data = {
        "id": result.id,
        "task": task.module_path,
        "args": result.args,
        "kwargs": result.kwargs,
        "backend": result.backend,
        "queue_name": task.queue_name,
        "priority": task.priority,
        "status": result.status.value,
        **times,
    }
    if result.errors:
        data["errors"] = [
            {"exception_class_path": each.exception_class_path, "traceback": each.traceback} for each in result.errors
        ]
    if result.worker_ids:
        data["worker_ids"] = result.worker_ids
    if result.status == TaskResultStatus.SUCCESSFUL:
        data["return_value"] = result.return_value
    return data


def as_result(data: Any) -> TaskResult[Any]:
    """The result of a message's data.

    Raises:
        ImportError: The code of the task is not there any more.
        TypeError: What is there by its name is no task.
    """
    found = json.loads(data) if isinstance(data, str) else data
    task = import_string(found["task"])
    if not isinstance(task, Task):
        raise TypeError(f"{found['task']} is not a task")
    times = {name: datetime.fromisoformat(found[name]) if name in found else None for name in _TIMES}
    result: TaskResult[Any] = TaskResult(
        task=task.using(queue_name=found["queue_name"], priority=found["priority"], backend=found["backend"]),
        id=found["id"],
        status=TaskResultStatus(found["status"]),
        args=found["args"],
        kwargs=found["kwargs"],
        backend=found["backend"],
        errors=[TaskError(**each) for each in found.get("errors", ())],
        worker_ids=found.get("worker_ids", []),
        **times,
    )
    # As Django's own backends do: the class is frozen, and has no argument for it.
    object.__setattr__(result, "_return_value", found.get("return_value"))
    return result
