"""`make faults` in small: everything at once, for a quarter of a minute."""

from __future__ import annotations

import random

from tests import servers
from tests.faults.endurance import Summary, endure


def test_random_faults_of_all_kinds_break_no_promise(own_server: servers.Server) -> None:
    summary = Summary(seed=random.randrange(2**32), commit="")

    endure(own_server, summary, minutes=0.25, round_seconds=15)

    assert summary.violations == {}, str(summary)
    assert summary.published > 100
    assert summary.deliveries > summary.published / 2
    assert summary.faults.total() > 5
