"""Endpoints of push consumers over Postgres and HTTP. What is sent is in tests/push."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server

URL = "https://example.com/hook?key=1"


async def test_an_endpoint_keeps_what_it_was_given_and_shows_no_secrets(bus: Any, stream: str, billing: Any) -> None:
    secret = await billing.push.set(
        URL,
        headers={"Authorization": "Bearer abc", "X-A": "1"},
        mode="batch",
        batch_size=50,
        timeout=90,
        concurrency=7,
        max_rate=12.5,
        retry_schedule=[1, timedelta(minutes=2)],
        permanent_statuses=[400, 422],
        keep_successes=True,
    )

    info = await billing.push.info()

    assert secret.startswith("whsec_")
    assert (info.stream, info.consumer, info.url, info.mode, info.batch_size) == (stream, "billing", URL, "batch", 50)
    assert (list(info.header_names), info.timeout, info.concurrency) == (
        ["Authorization", "X-A"],
        timedelta(seconds=90),
        7,
    )
    assert (info.max_rate, list(info.permanent_statuses), info.keep_successes) == (12.5, [400, 422], True)
    assert list(info.retry_schedule) == [timedelta(seconds=1), timedelta(minutes=2)]
    assert (info.state, info.reason, info.secret_count, info.last_error) == ("active", None, 1, None)
    assert secret not in repr(info)
    assert "Bearer abc" not in repr(info)
    # A request that is on its way is nobody else's.
    assert (await billing.info()).ack_wait == timedelta(seconds=105)
    assert info in await bus.list_pushes()


async def test_what_is_left_out_stays(billing: Any) -> None:
    await billing.push.set(URL, headers={"X-A": "1"}, max_rate=5, retry_schedule=[1])
    before = await billing.push.info()

    assert await billing.push.set(concurrency=3) is None
    changed = await billing.push.info()
    assert (changed.concurrency, changed.max_rate, changed.url) == (3, 5, URL)
    await billing.push.set(headers={}, max_rate=0, retry_schedule=[])
    emptied = await billing.push.info()
    assert (list(emptied.header_names), emptied.max_rate, list(emptied.retry_schedule)) == ([], None, [])
    assert emptied.created_at == before.created_at


async def test_an_endpoint_is_paused_with_a_reason_resumed_and_removed(billing: Any) -> None:
    await billing.push.set(URL)
    await billing.push.pause("maintenance")
    info = await billing.push.info()
    assert (info.state, info.reason) == ("paused", "maintenance")
    await billing.push.resume()
    assert (await billing.push.info()).state == "active"
    await billing.push.remove()
    for call in (
        billing.push.info,
        billing.push.pause,
        billing.push.resume,
        billing.push.remove,
        billing.push.begin_test,
        billing.push.rotate_secret,
    ):
        with pytest.raises(postbus.NotFound, match="has no endpoint"):
            await call()


async def test_a_rotated_secret_stands_beside_the_old_one_for_a_while(billing: Any) -> None:
    first = await billing.push.set(URL)
    second = await billing.push.rotate_secret(keep_old_for=60)
    assert second.startswith("whsec_")
    assert second != first
    assert (await billing.push.info()).secret_count == 2
    await billing.push.rotate_secret(keep_old_for=0)
    assert (await billing.push.info()).secret_count == 1


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "https://ada:secret@example.com/"}, "user name"),
        ({"url": None}, "url is missing"),
        ({"headers": {"Content-Type": "x"}}, "sets itself"),
        ({"headers": {"webhook-id": "x"}}, "sets itself"),
        ({"headers": {"a b": "x"}}, "HTTP does not allow|headers"),
        ({"headers": {"x": "a\nb"}}, "HTTP does not allow|headers"),
        ({"timeout": 500}, "timeout"),
        ({"concurrency": 0}, "concurrency"),
        ({"batch_size": 5000}, "batch_size"),
        ({"max_rate": -1}, "max_rate"),
        ({"permanent_statuses": [200]}, "permanent_statuses"),
    ],
)
async def test_what_is_not_allowed_is_named(billing: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=match) as refused:
        await billing.push.set(**{"url": URL, **given})
    assert "secret" not in str(refused.value)
    with pytest.raises(postbus.NotFound):
        await billing.push.info()


async def test_a_group_has_no_endpoint(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "readers")
    with pytest.raises(postbus.Conflict, match="group"):
        await bus.consumer(stream, "readers").push.set(URL)


async def test_a_message_is_sent_again_and_so_are_those_that_failed_since(bus: Any, stream: str, billing: Any) -> None:
    await billing.push.set(URL)
    seqs = [await bus.publish(stream, key=f"k{n}", data=n) for n in range(4)]
    started = datetime.now(UTC) - timedelta(seconds=5)
    done, dead, waiting, later = await billing.receive(4)
    await billing.ack(done)
    await billing.terminate(dead, reason="bad")
    await billing.nack(waiting, delay=3600)
    await billing.nack(later, delay=3600)

    assert await billing.push.resend(done.seq) == 1
    assert await billing.push.resend(failed_since=started, rate=1000) == 3
    assert await billing.push.resend(failed_since=started) == 0
    again = {each.seq: each.attempt for each in await billing.receive(10, wait=5)}
    while len(again) < 4:
        again |= {each.seq: each.attempt for each in await billing.receive(10, wait=5)}
    assert sorted(again) == sorted(seqs)
    assert again[waiting.seq] == 2
    with pytest.raises(postbus.InvalidInput):
        await billing.push.resend()


async def test_a_test_that_nobody_sends_says_so_and_attempts_can_be_asked_for(billing: Any) -> None:
    await billing.push.set(URL)
    with pytest.raises(postbus.Unavailable, match="nobody sends"):
        await billing.push.test(wait=0)
    assert await billing.push.attempts(outcome="failed", before_time=datetime.now(UTC)) == []
    with pytest.raises(postbus.InvalidInput):
        await billing.push.attempts(max_attempts=0)
    for _ in range(9):
        await billing.push.begin_test()
    with pytest.raises(postbus.Conflict, match="ten tests"):
        await billing.push.begin_test()
