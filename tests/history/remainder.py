"""What is there when everybody has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import postbus


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The seqs of a stream's messages, and of those that a consumer has not finished.

    Attributes:
        stream: All that the stream has.
        dead: The consumer's dead letters.
        left: What is available to it, delivered or waiting.
    """

    stream: frozenset[int]
    dead: frozenset[int]
    left: frozenset[int]


def remainder_of(bus: postbus.Bus, stream: str, consumer: str) -> Remainder:
    """What there is now, of the keys that the consumer wants. Nobody may publish or receive meanwhile."""
    peeked = list(_peek_all(bus.consumer(stream, consumer)))
    wanted = bus.scan(stream, key_pattern=bus.consumer(stream, consumer).info().filter_key_pattern)
    return Remainder(
        stream=frozenset(message.seq for message in wanted if message.seq is not None),
        dead=frozenset(message.seq for message in peeked if message.state == "dead"),
        left=frozenset(message.seq for message in peeked if message.state != "dead"),
    )


def _peek_all(consumer: postbus.Consumer) -> Iterator[postbus.Peeked]:
    after_seq = 0
    while page := consumer.peek(after_seq=after_seq, max_messages=1000):
        yield from page
        after_seq = page[-1].seq
