"""What an adapter offers. A workload asks for the roles it needs, so a system need not have them all.

A place is what a system keeps messages in: a stream, a queue, a table. Adapters hold no state, because they travel to
the processes that do the work; connections live in what they open.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from benchmarks.messages import Message


class System(Protocol):
    @property
    def name(self) -> str: ...

    def install(self, url: str) -> None:
        """Put what the system needs into a new database."""

    def create_place(self, url: str, place: str) -> None: ...

    def drop_place(self, url: str, place: str) -> None: ...

    def count(self, url: str, place: str) -> int:
        """How many messages are stored, counted one by one: a fast system that lost some must not win."""


class Publisher(Protocol):
    """One producer's connection. A message is durable when a call returns."""

    def publish(self, place: str, message: Message) -> None: ...

    def publish_many(self, place: str, messages: Sequence[Message]) -> None: ...


class PublishingSystem(System, Protocol):
    def open_publisher(self, url: str) -> AbstractContextManager[Publisher]: ...


class Reader(Protocol):
    """One reader's connection."""

    def pages(self, place: str, page_size: int) -> Iterator[int]:
        """Go through all messages in order and look into each; yields how many each page had."""


class ReadingSystem(System, Protocol):
    def fill(self, url: str, place: str, message_count: int) -> None:
        """Add messages that Postgres makes itself: a way to get many, not a thing to measure."""

    def open_reader(self, url: str) -> AbstractContextManager[Reader]: ...


class Consumer(Protocol):
    """One worker's connection."""

    def receive_and_ack(self, max_messages: int) -> int:
        """Take messages, look into each and finish them, durably; how many, 0 when there are none left.

        A system may finish them with its next call.
        """


class ConsumingSystem(System, Protocol):
    def fill(self, url: str, place: str, message_count: int) -> None:
        """As for ReadingSystem."""

    def open_consumer(
        self, url: str, place: str, *, worker: int = 0, worker_count: int = 1
    ) -> AbstractContextManager[Consumer]:
        """Connect one of so many workers, for systems that can only share work out beforehand."""


class ExchangingSystem(ConsumingSystem, PublishingSystem, Protocol):
    """For those who put in and take out."""


class Poller(Protocol):
    """One worker who waits for messages."""

    def receive(self, max_messages: int) -> Sequence[Mapping[str, Any]]:
        """Finish what the last call gave, then wait a few seconds for more; the data of what came."""


class PollingSystem(PublishingSystem, Protocol):
    def open_poller(self, url: str, place: str) -> AbstractContextManager[Poller]: ...


@contextmanager
def fresh_place(system: System, url: str) -> Iterator[str]:
    """A new place for one round, so that no round meets what another left behind."""
    place = f"bench_{secrets.token_hex(4)}"
    system.create_place(url, place)
    try:
        yield place
    finally:
        system.drop_place(url, place)
