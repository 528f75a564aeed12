"""Tasks, as a user would write them."""

from __future__ import annotations

from typing import Any

from django_tasks import TaskContext, task

seen: list[Any] = []


@task
def add(first: int, second: int) -> int:
    seen.append(first + second)
    return first + second


@task
async def greet(name: str) -> str:
    return f"hello {name}"


@task(takes_context=True)
def attempt(context: TaskContext) -> int:
    if context.attempt == 1:
        raise ConnectionError("the first one fails")
    return context.attempt


@task(queue_name="slow", priority=50)
def fail() -> None:
    raise ValueError("always")
