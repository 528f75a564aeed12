"""What a source's settings may be, and what of them is shown."""

from __future__ import annotations

import pytest

from postbus.db.replication.walsender import connection_info
from postbus.model.errors import InvalidInput
from postbus.sources import conditions
from postbus.sources.recent import RecentChanges, Snapshot
from postbus.sources.settings import shown_url

SECRET = "geheim"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@db.example:5433/shop",
        f"postgres://ada@db.example:5433/shop?password={SECRET}",
        f"postgresql://db.example:5433/shop?user=ada&password={SECRET}&sslmode=require",
    ],
)
def test_a_url_is_shown_without_its_password(url: str) -> None:
    assert shown_url(url) == "ada@db.example:5433/shop"


@pytest.mark.parametrize(
    "url", [f"mysql://a:{SECRET}@b/c", f"postgresql://a:{SECRET}@b:port:x/c?%zz", f"host=a password={SECRET}", ""]
)
def test_a_wrong_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        connection_info(url + f"&{SECRET}=1", application="x")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "condition", ["total > 10", "status <> 'a;b--'", "(a and (b or c))", '"odd name" is null', "note = 'it''s'"]
)
def test_a_condition_is_one_expression(condition: str) -> None:
    conditions.check(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "true) ; drop table x; --",
        "a) or (b",
        "a; b",
        "a -- b",
        "a /* b",
        "$$a$$",
        "'a",
        "(a",
        "E'\\'' )",
        "",
        "a)), table b where ((true",
    ],
)
def test_a_condition_cannot_leave_its_parentheses(condition: str) -> None:
    with pytest.raises(InvalidInput):
        conditions.check(condition)


def test_a_snapshot_sees_transactions_by_the_lower_half_of_their_ids() -> None:
    epoch = 3 << 32
    snapshot = Snapshot.parse(f"{epoch + 5}:{epoch + 10}:{epoch + 5},{epoch + 8}")
    assert [xid for xid in range(12) if snapshot.sees(xid)] == [0, 1, 2, 3, 4, 6, 7, 9]
    # Of before the ids began again.
    assert snapshot.sees((1 << 32) - 100)
    assert not Snapshot.parse(f"{epoch - 5}:{epoch - 5}:").sees(3)


def test_changes_are_remembered_until_all_snapshots_see_them() -> None:
    recent = RecentChanges()
    table = ("public", "t")
    recent.note(table, (b"1",), 7)
    recent.note_truncate(table, 7)
    before, after = Snapshot.parse("7:7:"), Snapshot.parse("8:8:")

    assert not recent.may_publish(table, (b"1",), before)
    assert recent.may_publish(table, (b"2",), before)
    assert not recent.may_publish_table(table, before)
    recent.forget(before)
    assert not recent.may_publish(table, (b"1",), before)
    recent.forget(after)
    assert recent.may_publish(table, (b"1",), after)
    assert recent.may_publish_table(table, after)
