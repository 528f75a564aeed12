"""Sends the tests that somebody has asked for."""

from __future__ import annotations

import time

from postbus.http.outgoing import Outgoing, OutgoingFailure
from postbus.operations import push as operations
from postbus.push import requests
from postbus.push.reporter import Reporter
from postbus.transport._async.postgres import AsyncPostgresTransport


async def send_tests(
    transport: AsyncPostgresTransport, http: Outgoing, reporter: Reporter, consumer_id: int, place: tuple[str, str]
) -> None:
    """Send the tests of an endpoint that no other process has taken, and report how they went."""
    endpoint = await transport.run(operations.to_send(consumer_id))
    for test_id in await transport.run(operations.take_tests(consumer_id)):
        if endpoint is None:
            return
        request = requests.of_test(endpoint, test_id, *place)
        started = time.monotonic()
        answer, error = None, None
        try:
            signed = request.signed(endpoint, int(time.time()))
            answer = await http.post(endpoint.url, signed, request.body, endpoint.timeout.total_seconds())
            if not 200 <= answer.status < 300:
                error = f"answered {answer.status}"
        except OutgoingFailure as failure:
            error = failure.reason
        reporter.attempted(
            "test",
            time.monotonic() - started,
            test_id=test_id,
            status=None if answer is None else answer.status,
            error=error,
            address=None if answer is None else answer.address,
            answer=None if answer is None else answer.beginning,
        )
        await reporter.flush()
