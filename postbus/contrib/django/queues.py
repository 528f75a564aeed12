"""The queues of tasks: one for each queue name of a backend, and a stream of results where they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from postbus import connect
from postbus.contrib.django.database import url_of

if TYPE_CHECKING:
    from postbus.contrib.django.backend import PostbusBackend


def create_queues(alias: str) -> None:
    """Make the queues and streams of backends in a database what the settings say."""
    wanted = declaration([each for each in backends() if each.database == alias])
    if wanted["queues"]:
        with connect(url_of(alias), upkeep=False) as bus:
            bus.apply(wanted)


def declaration(found: list[PostbusBackend]) -> dict[str, Any]:
    """What backends need, in the form that `bus.apply` takes."""
    # A worker extends leases while a task runs; a minute is for a worker that died.
    queues = {
        backend.queue_of(name): {"max_deliver": backend.max_attempts, "ack_wait": 60}
        for backend in found
        for name in sorted(backend.queues)
    }
    streams = {
        each.results: {"one_message_per_key": True, "retain_up_to": each.keep_results}
        for each in found
        if each.keep_results is not None
    }
    return {"queues": queues, "streams": streams}


def backends() -> list[PostbusBackend]:
    """The backends of this kind that the settings name."""
    if not getattr(settings, "TASKS", None):
        return []
    # Only a project with tasks needs django-tasks.
    from postbus.contrib.django.backend import PostbusBackend
    from postbus.contrib.django.tasks_api import task_backends

    return [each for each in (task_backends[alias] for alias in settings.TASKS) if isinstance(each, PostbusBackend)]
