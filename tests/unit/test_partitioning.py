from __future__ import annotations

import pytest

import postbus


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
