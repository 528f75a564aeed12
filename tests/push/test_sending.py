"""Messages of a push consumer reach its endpoint, signed, in order, and are acked by its answers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

import postbus
from tests.push.conftest import eventually, sending
from tests.push.receiver import Received, Receiver


async def pushed(bus: postbus.AsyncBus, endpoint: Receiver, *, partitions: int = 4, **settings: Any) -> Any:
    """A consumer with an endpoint."""
    own = {name: settings.pop(name) for name in ("order", "max_deliver", "backoff") if name in settings}
    await bus.create_stream("orders", partitions=partitions)
    consumer = await bus.create_consumer("orders", "hook", **own)
    await consumer.push.set(endpoint.url, **settings)
    return consumer


async def test_messages_are_sent_as_they_are_stored_and_acked(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, headers={"X-Tenant": "a"})
    seq = await bus.publish("orders", key="orders.é.1", data={"b": 1, "a": [1.50, None]})

    async with sending(fresh_url):
        await eventually(lambda: endpoint.requests, "the request")
        (request,) = endpoint.requests
        assert request.body == b'{"b":1,"a":[1.5,null]}'
        assert request.headers["content-type"] == "application/json"
        assert request.headers["x-tenant"] == "a"
        assert (request.seq, request.attempt, request.key) == (seq, 1, "orders.%C3%A9.1")
        await eventually(lambda: is_done(consumer), "the ack")


async def is_done(consumer: Any) -> bool:
    stats = await consumer.stats()
    return bool(stats.backlog == 0 and stats.in_flight == 0)


async def test_many_messages_are_sent_in_the_order_of_their_keys(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=20)
    seqs = await bus.publish_many("orders", [postbus.Message(key=f"k.{n % 37}", data=n) for n in range(2000)])

    async with sending(fresh_url), sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are done", 30)

    assert sorted(each.seq for each in endpoint.requests) == seqs
    by_key: dict[str | None, list[int]] = {}
    for each in endpoint.requests:
        by_key.setdefault(each.key, []).append(each.seq)
    assert all(found == sorted(found) for found in by_key.values())


async def test_a_message_that_failed_is_sent_again_with_the_same_id(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, retry_schedule=[0.1])
    endpoint.answer = lambda request: 500 if request.attempt < 3 else 204
    await bus.publish("orders", key="a", data=1)

    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "it is done")

    assert [each.attempt for each in endpoint.requests] == [1, 2, 3]
    assert len({each.id for each in endpoint.requests}) == 1
    attempts = await consumer.push.attempts()
    assert [(each.outcome, each.status) for each in attempts] == [("failed", 500), ("failed", 500)]


async def test_what_an_endpoint_that_is_gone_was_not_sent_waits(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=1)
    endpoint.answer = lambda _: 410
    await bus.publish_many("orders", [postbus.Message(key="a", data=n) for n in range(10)])

    async with sending(fresh_url):
        await eventually(lambda: is_paused(consumer), "it is paused")
        await asyncio.sleep(1.5)
        assert len(endpoint.requests) == 1
        assert "410" in ((await consumer.push.info()).reason or "")

        endpoint.answer = lambda _: 200
        await consumer.push.resume()
        await eventually(lambda: is_done(consumer), "all are sent")
    assert [each.attempt for each in endpoint.requests] == [1] * 11


async def is_paused(consumer: Any) -> bool:
    return bool((await consumer.push.info()).state == "paused")


async def test_an_endpoint_that_asks_for_a_rest_gets_it_and_no_attempt_counts(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=1)
    answers = iter([(429, {"Retry-After": "2"}), (503, {"Retry-After": "1"})])
    endpoint.answer = lambda _: next(answers, 200)
    await bus.publish_many("orders", [postbus.Message(key=f"k{n}", data=n) for n in range(10)])
    loop = asyncio.get_running_loop()

    async with sending(fresh_url):
        await eventually(lambda: len(endpoint.requests) == 1, "the first request")
        started = loop.time()
        await eventually(lambda: len(endpoint.requests) == 2, "the second request")
        assert 1.8 < loop.time() - started < 4
        await eventually(lambda: is_done(consumer), "all are sent")
    assert {each.attempt for each in endpoint.requests} == {1}
    assert len(endpoint.requests) == 12


async def test_redirects_are_failures(bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver) -> None:
    consumer = await pushed(bus, endpoint, retry_schedule=[60], permanent_statuses=[400])
    endpoint.answer = lambda request: (302, {"Location": endpoint.url}) if request.key == "a" else 400
    await bus.publish("orders", key="a", data=1)
    await bus.publish("orders", key="b", data=1)

    async with sending(fresh_url):
        await eventually(lambda: count(consumer, 2), "both have failed")
    assert len(endpoint.requests) == 2
    by_status = {each.status: each.outcome for each in await consumer.push.attempts()}
    assert by_status == {302: "failed", 400: "dead"}
    assert [each.key for each in await consumer.dead_letters()] == ["b"]


async def count(consumer: Any, wanted: int) -> bool:
    return len(await consumer.push.attempts()) == wanted


async def test_a_batch_is_one_request_and_the_answer_names_what_failed(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(
        bus, endpoint, partitions=1, mode="batch", batch_size=10, retry_schedule=[0.1], order="none"
    )
    seqs = await bus.publish_many("orders", [postbus.Message(key="a", data={"n": n}) for n in range(10)])

    def first_names_two(request: Received) -> Any:
        if len(endpoint.requests) > 1:
            return 200
        ids = [each["id"] for each in request.json["data"]]
        named = ",".join(f'{{"itemIdentifier": "{each}"}}' for each in (ids[2], ids[5]))
        return 200, {}, f'{{"batchItemFailures": [{named}]}}'.encode()

    endpoint.answer = first_names_two
    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are done")

    items = [[each["data"]["n"] for each in request.json["data"]] for request in endpoint.requests]
    assert items == [list(range(10)), [2, 5]]
    assert {each["id"].rpartition("_")[2] for each in endpoint.requests[0].json["data"]} == {str(seq) for seq in seqs}


async def test_a_test_message_is_sent_and_its_result_is_shown(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint)
    await consumer.push.pause("maintenance")
    endpoint.answer = lambda _: (418, {}, b"teapot")

    async with sending(fresh_url):
        result = await consumer.push.test(wait=10)

    assert (result.status, result.outcome, result.answer, result.address) == (418, "test", b"teapot", "127.0.0.1")
    assert endpoint.requests[0].json["type"] == "postbus.test"


async def test_a_new_secret_signs_beside_the_old_one_until_that_ends(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    await bus.create_stream("orders")
    consumer = await bus.create_consumer("orders", "hook")
    old = await consumer.push.set(endpoint.url)

    def verified_by(secret: str | None) -> bool:
        last = endpoint.requests[-1]
        with contextlib.suppress(WebhookVerificationError):
            Webhook(secret or "").verify(last.body, last.headers)
            return True
        return False

    async with sending(fresh_url):
        new = await consumer.push.rotate_secret(keep_old_for=4)
        # Senders look once a second.
        await asyncio.sleep(1.5)
        await bus.publish("orders", key="a", data=1)
        await eventually(lambda: endpoint.requests, "it is sent")
        assert (verified_by(old), verified_by(new)) == (True, True)
        await asyncio.sleep(4.5)
        await bus.publish("orders", key="a", data=2)
        await eventually(lambda: len(endpoint.requests) == 2, "it is sent")
        assert (verified_by(old), verified_by(new)) == (False, True)


async def test_a_batch_whose_answer_is_cut_off_is_sent_again(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, partitions=1, mode="batch", order="none", retry_schedule=[0.1])
    endpoint.answer = lambda _: (200, {}, b" " * 100_000) if len(endpoint.requests) == 1 else 200
    await bus.publish_many("orders", [postbus.Message(data=n) for n in range(3)])

    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are done")
    assert len(endpoint.requests) == 2
    assert len({each.id for each in endpoint.requests}) == 1


async def test_messages_of_text_and_bytes_are_sent_as_they_are(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    for data_type, data in (("text", "é"), ("bytes", b"\xff\x00")):
        await bus.create_stream(data_type, data_type=data_type)  # type: ignore[arg-type]
        consumer = await bus.create_consumer(data_type, "hook")
        await consumer.push.set(endpoint.url)
        await bus.publish(data_type, data=data, headers={"content-type": "image/png"})

    async with sending(fresh_url):
        await eventually(lambda: len(endpoint.requests) == 2, "both are sent")
    assert {each.body: each.headers["content-type"] for each in endpoint.requests} == {
        "é".encode(): "text/plain; charset=utf-8",
        b"\xff\x00": "image/png",
    }
