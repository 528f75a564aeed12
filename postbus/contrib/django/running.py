"""Runs tasks: what a worker calls for each message of their queues."""

from __future__ import annotations

import logging
import traceback
from dataclasses import replace
from typing import Any

from django.db import close_old_connections
from django.utils import timezone

import postbus
from postbus.contrib.django import records
from postbus.contrib.django.backend import PostbusBackend
from postbus.contrib.django.tasks_api import (
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_finished,
    task_started,
)

_log = logging.getLogger("postbus.django")


class TaskRunner:
    """Runs the tasks of a backend, in threads of one worker.

    Args:
        backend: The backend.
        worker_id: Names this worker in the results.
    """

    def __init__(self, backend: PostbusBackend, worker_id: str) -> None:
        self._backend = backend
        self._worker_id = worker_id

    def handle(self, delivery: postbus.Delivery) -> None:
        """Run the task of a delivery. If it raises, the delivery fails: it is redelivered, or becomes a dead letter."""
        close_old_connections()
        try:
            self._handle(delivery)
        finally:
            close_old_connections()

    def _handle(self, delivery: postbus.Delivery) -> None:
        try:
            result = records.as_result(delivery.data)
        except (ImportError, TypeError, KeyError, ValueError) as error:
            raise postbus.Reject(f"this is no task that can be run: {type(error).__name__}: {error}") from error
        now = timezone.now()
        running = replace(
            result,
            status=TaskResultStatus.RUNNING,
            started_at=now,
            last_attempted_at=now,
            worker_ids=[self._worker_id] * delivery.attempt,
        )
        self._backend.note(running)
        task_started.send(type(self._backend), task_result=running)
        try:
            value = _call(running)
        except Exception as error:
            self._fail(running, error, is_last=delivery.is_last_attempt)
            raise
        done = replace(running, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now())
        object.__setattr__(done, "_return_value", value)
        self._backend.note(done)
        task_finished.send(type(self._backend), task_result=done)

    def _fail(self, running: TaskResult[Any], error: Exception, *, is_last: bool) -> None:
        kind = type(error)
        told = TaskError(
            exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
            traceback="".join(traceback.format_exception(error)),
        )
        status = TaskResultStatus.FAILED if is_last else TaskResultStatus.READY
        ended = timezone.now() if is_last else None
        failed = replace(running, status=status, errors=[*running.errors, told], finished_at=ended)
        self._backend.note(failed)
        if is_last:
            task_finished.send(type(self._backend), task_result=failed)
        else:
            _log.warning("task %s failed and is run again: %s", running.task.module_path, error)


def _call(result: TaskResult[Any]) -> Any:
    task, arguments = result.task, list(result.args)
    if task.takes_context:
        arguments.insert(0, TaskContext(task_result=result))
    return task.call(*arguments, **result.kwargs)
