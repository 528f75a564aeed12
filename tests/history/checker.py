"""All checks of a consumer's history."""

from __future__ import annotations

from tests.history.history import History
from tests.history.remainder import Remainder
from tests.history.rules.completeness import (
    check_counted_once,
    check_counts,
    check_finished_for_good,
    check_nothing_is_lost,
)
from tests.history.rules.leases import check_attempts, check_one_worker_at_a_time
from tests.history.rules.levels import check_levels
from tests.history.rules.order import Scope, check_order
from tests.history.violation import Violation


def check(
    history: History, remainder: Remainder, *, scope: Scope | None = None, max_deliver: int | None = None
) -> list[Violation]:
    """What certainly went wrong with a consumer that was neither moved by seek nor given dead letters back.

    Args:
        history: What happened.
        remainder: What there was when everybody had stopped.
        scope: Within what order was promised; None if it was not.
        max_deliver: The consumer's.
    """
    return [
        *check_nothing_is_lost(history, remainder),
        *check_counts(history, remainder),
        *check_counted_once(history),
        *check_finished_for_good(history, remainder),
        *check_one_worker_at_a_time(history),
        *check_attempts(history),
        *(check_order(history, scope, max_deliver) if scope is not None else ()),
        *check_levels(history, by_key=scope is not None),
    ]
