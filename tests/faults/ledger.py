"""The books of a fault test: what publishers know of each message, settled against what the stream has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import postbus


@dataclass(slots=True)
class Ledger:
    """What became of each message, as its publisher saw it.

    Attributes:
        published: Its seq, for a message whose publish returned.
        refused: Those whose publish failed with the promise that nothing was done.
        unknown: Those whose connection was lost on the way.
    """

    published: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)

    def add(self, other: Ledger) -> None:
        self.published.update(other.published)
        self.refused |= other.refused
        self.unknown |= other.unknown

    def settle(self, messages: Iterable[postbus.Message]) -> None:
        """Compare with all messages of the stream: nothing lost, nothing twice, nothing that should not be there."""
        seqs = {message.data: message.seq for message in messages}
        counts = Counter(message.data for message in messages)
        arrived = self.unknown & seqs.keys()

        assert [name for name, count in counts.items() if count > 1] == []
        assert {name: seqs.get(name) for name in self.published} == self.published
        assert self.refused & seqs.keys() == set()
        assert len(counts) == len(self.published) + len(arrived), "published + arrived = in the stream"


def is_whole(batch: Iterable[int], size: int) -> bool:
    """Whether the places of a batch's messages, in the order of the stream, are all there, once each."""
    return list(batch) == list(range(size))
