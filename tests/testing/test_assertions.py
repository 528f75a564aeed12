"""Helpers for those who test their own code: what was published."""

from __future__ import annotations

import pytest

import postbus
from postbus.testing import assert_not_published, assert_published, make_due, messages


@pytest.fixture
def shop(postbus_bus: postbus.Bus) -> postbus.Bus:
    postbus_bus.create_stream("orders")
    postbus_bus.publish(
        "orders", key="orders.a.1", data={"total": 5, "lines": [1]}, headers={"trace": "t1", "by": "web"}
    )
    postbus_bus.publish("orders", key="orders.b.2", data={"total": 7})
    return postbus_bus


def test_messages_are_found_by_key_pattern_part_of_the_data_and_headers(shop: postbus.Bus) -> None:
    assert [each.key for each in assert_published(shop, "orders", key="orders.*.1")] == ["orders.a.1"]
    assert assert_published(shop, "orders", data={"total": 7})[0].key == "orders.b.2"
    assert assert_published(shop, "orders", headers={"trace": "t1"})[0].key == "orders.a.1"
    assert len(assert_published(shop, "orders", count=2)) == 2
    assert_not_published(shop, "orders", data={"total": 8})


def test_a_failed_assertion_shows_what_was_published(shop: postbus.Bus) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_published(shop, "orders", key="orders.a.>", data={"total": 6})

    assert str(raised.value) == (
        "expected a message in orders with key = 'orders.a.>', data = {'total': 6}, found 0; the last of 2:\n"
        "  orders.a.1: {'total': 5, 'lines': [1]}\n"
        "  orders.b.2: {'total': 7}"
    )
    with pytest.raises(AssertionError, match="expected 1 message in orders with any content, found 2"):
        assert_published(shop, "orders", count=1)
    with pytest.raises(AssertionError, match="expected 0 messages"):
        assert_not_published(shop, "orders", key="orders.b.2")


def test_scheduled_messages_are_published_when_a_test_says_that_their_time_has_come(postbus_bus: postbus.Bus) -> None:
    postbus_bus.create_stream("reminders")
    postbus_bus.publish("reminders", key="r.1", data={}, delay=3600)

    assert messages(postbus_bus, "reminders") == []
    assert make_due(postbus_bus, "reminders") == 1
    assert [each.key for each in messages(postbus_bus, "reminders")] == ["r.1"]
    assert make_due(postbus_bus, "reminders") == 0
