"""One suite for both twins: the sync bus with methods that can be awaited like those of the async one."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import postbus

# More than the default, which a few long polls on a small machine would fill.
_threads = ThreadPoolExecutor(64)


async def _in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, call)


class AwaitableBus:
    """Passes each call to a sync bus in a thread."""

    def __init__(self, bus: postbus.Bus) -> None:
        self._bus = bus

    @property
    def url(self) -> str:
        return self._bus.url

    @property
    def tokens(self) -> AwaitablePart:
        return AwaitablePart(self._bus.tokens)

    @property
    def channels(self) -> AwaitablePart:
        return AwaitablePart(self._bus.channels)

    @property
    def tasks(self) -> AwaitablePart:
        return AwaitablePart(self._bus.tasks)

    @property
    def schedules(self) -> AwaitablePart:
        return AwaitablePart(self._bus.schedules)

    @property
    def webhook_sources(self) -> AwaitablePart:
        return AwaitablePart(self._bus.webhook_sources)

    @property
    def sources(self) -> AwaitablePart:
        return AwaitablePart(self._bus.sources)

    def __getattr__(self, name: str) -> Any:
        return _awaitable(getattr(self._bus, name))

    def consumer(self, stream: str, consumer: str) -> AwaitableConsumer:
        return AwaitableConsumer(self._bus.consumer(stream, consumer))

    def queue(self, name: str) -> AwaitableConsumer:
        return AwaitableConsumer(self._bus.queue(name))

    def group(self, stream: str, group: str) -> AwaitableGroup:
        return AwaitableGroup(self._bus.group(stream, group))

    async def create_consumer(self, *args: Any, **kwargs: Any) -> AwaitableConsumer:
        return AwaitableConsumer(await _in_thread(self._bus.create_consumer, *args, **kwargs))


class AwaitablePart:
    """Passes each call of a part of a sync bus, such as its tokens, to it in a thread."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return _awaitable(getattr(self._part, name))


class AwaitableConsumer:
    """Passes each call to a sync consumer in a thread."""

    def __init__(self, consumer: postbus.Consumer) -> None:
        self._consumer = consumer

    @property
    def push(self) -> AwaitablePart:
        return AwaitablePart(self._consumer.push)

    def __getattr__(self, name: str) -> Any:
        return _awaitable(getattr(self._consumer, name))


class AwaitableGroup:
    """Passes each call to a sync group in a thread."""

    def __init__(self, group: postbus.Group) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return _awaitable(getattr(self._group, name))

    def join(self, *args: Any, **kwargs: Any) -> AwaitableMember:
        return AwaitableMember(self._group.join(*args, **kwargs))


class AwaitableMember:
    """Passes each call to a sync member of a group in a thread."""

    def __init__(self, member: postbus.Member) -> None:
        self._member = member

    @property
    def partitions(self) -> tuple[int, ...]:
        return self._member.partitions

    def __getattr__(self, name: str) -> Any:
        return _awaitable(getattr(self._member, name))

    async def __aenter__(self) -> AwaitableMember:
        await _in_thread(self._member.__enter__)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await _in_thread(self._member.__exit__, *error)


def _awaitable(method: Any) -> Any:
    if inspect.isgeneratorfunction(method):
        return lambda *args, **kwargs: _iterate(method(*args, **kwargs))
    return lambda *args, **kwargs: _in_thread(method, *args, **kwargs)


async def _iterate(values: Iterator[Any]) -> AsyncIterator[Any]:
    end = object()
    try:
        while (value := await _in_thread(next, values, end)) is not end:
            yield value
    finally:
        if isinstance(values, Generator):
            await _in_thread(values.close)
