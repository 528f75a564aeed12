"""Helpers for those who test their own code: handlers, as their workers would call them."""

from __future__ import annotations

from typing import Any

import pytest

import postbus
from postbus.testing import drain, drain_async


@pytest.fixture
def billing(postbus_bus: postbus.Bus) -> postbus.Consumer:
    postbus_bus.create_stream("orders")
    consumer = postbus_bus.create_consumer("orders", "billing", max_deliver=1)
    for number in range(3):
        postbus_bus.publish("orders", key=f"orders.{number}", data=number)
    return consumer


def test_drain_calls_the_handler_for_each_message(billing: postbus.Consumer) -> None:
    seen: list[Any] = []

    summary = drain(billing, lambda delivery: seen.append(delivery.data))

    assert sorted(seen) == [0, 1, 2]
    assert summary.acked_count == 3
    assert drain(billing, seen.append).acked_count == 0


def test_an_exception_of_the_handler_fails_the_test(billing: postbus.Consumer) -> None:
    def handle(delivery: postbus.Delivery) -> None:
        raise KeyError(delivery.data)

    with pytest.raises(KeyError):
        drain(billing, handle)


def test_an_exception_is_a_failed_delivery_where_the_test_says_so(billing: postbus.Consumer) -> None:
    def handle(delivery: postbus.Delivery) -> None:
        if delivery.data == 1:
            raise ValueError("one")

    drain(billing, handle, raises=False)

    (dead,) = billing.dead_letters()
    assert dead.reason == "ValueError: one"


def test_what_a_handler_says_of_a_message_does_not_fail_the_test(billing: postbus.Consumer) -> None:
    def handle(delivery: postbus.Delivery) -> None:
        raise postbus.Reject("not mine")

    drain(billing, handle)

    assert {each.reason for each in billing.dead_letters()} == {"not mine"}


def test_a_handler_may_write_in_the_transaction_of_its_ack(billing: postbus.Consumer, postbus_url: str) -> None:
    drain(billing, lambda _, connection: connection.execute("select 1"), transaction=True)

    assert billing.stats().backlog == 0


async def test_drain_async_takes_async_handlers_and_plain_ones(postbus_url: str) -> None:
    async with await postbus.connect_async(postbus_url, upkeep=False) as bus:
        await bus.create_stream("orders")
        consumer = await bus.create_consumer("orders", "billing")
        seen: list[Any] = []

        async def handle(delivery: postbus.Delivery) -> None:
            seen.append(delivery.data)

        await bus.publish("orders", key="k", data=1)
        await drain_async(consumer, handle)
        await bus.publish("orders", key="k", data=2)
        await drain_async(consumer, lambda delivery: seen.append(delivery.data))
        await bus.publish("orders", key="k", data=3)
        with pytest.raises(ZeroDivisionError):
            await drain_async(consumer, lambda delivery: delivery.data / 0)

    assert seen == [1, 2]
