from __future__ import annotations

import pytest

import postbus
from postbus.model.partitioning import channel_of, lane_of, priority_of


@pytest.mark.parametrize(
    ("key", "partition"), [("orders.cus_a.1", 751), ("a", 57), ("ключ.日本", 434), ("x" * 255, 297), ("", 924)]
)
def test_a_key_always_has_the_same_partition(key: str, partition: int) -> None:
    """These numbers are a promise to everything already stored: if this fails, mend the code and never the numbers."""
    assert postbus.partition_of(key, 1000) == partition


def test_keys_spread_evenly() -> None:
    counts = [0] * 8
    for number in range(8000):
        counts[postbus.partition_of(f"orders.k{number}", 8)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


@pytest.mark.parametrize(
    ("priority", "partition"), [(0, 100000003), (3, 400000003), (4, 3), (5, 500000003), (9, 900000003)]
)
def test_a_priority_is_in_the_number_of_its_partitions(priority: int, partition: int) -> None:
    """A promise to everything already stored, too."""
    assert lane_of(priority) + 3 == partition
    assert priority_of(partition) == priority


@pytest.mark.parametrize(
    ("key", "tokens", "channel"),
    [("a.b.c", 1, "a"), ("a.b.c", 2, "a.b"), ("a", 2, "a"), ("a.b.c", None, "a.b.c"), (None, 1, None)],
)
def test_a_channel_is_so_many_leading_tokens_of_a_key(key: str | None, tokens: int | None, channel: str | None) -> None:
    assert channel_of(key, tokens) == channel
