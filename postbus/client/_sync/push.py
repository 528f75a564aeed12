# Generated from postbus/client/_async/push.py by `make generate`; edit that file.

"""Push: the messages of a consumer are sent to an endpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from postbus._compat import sleep
from postbus.client._sync.base import Client
from postbus.model.duration import as_seconds
from postbus.model.errors import InvalidInput, NotFound, Unavailable
from postbus.model.push import AttemptOutcome, PushAttempt, PushInfo, PushMode
from postbus.operations import push as operations
from postbus.transport._sync.base import Transport
from postbus.webhooks.signatures import new_secret

_LOOK_SECONDS: Final = 0.2


class Push(Client):
    """The endpoint of a consumer: servers send its messages there; get it from `consumer.push`.

    Every server sends, and so does `postbus push run`. Each message is sent at least once, with the same `webhook-id` each time,
    and signed as Standard Webhooks says. Every method but `set` raises `postbus.NotFound` when the consumer has no endpoint.
    """

    def __init__(self, transport: Transport, stream: str, consumer: str) -> None:
        super().__init__(transport)
        self._stream = stream
        self._consumer = consumer

    def set(
        self,
        url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        mode: PushMode | None = None,
        batch_size: int | None = None,
        timeout: float | timedelta | None = None,
        concurrency: int | None = None,
        max_rate: float | None = None,
        retry_schedule: Sequence[float | timedelta] | None = None,
        permanent_statuses: Sequence[int] | None = None,
        keep_successes: bool | None = None,
    ) -> str | None:
        """Send the messages of the consumer to an endpoint, or change how. What is None stays as it is.

        Args:
            url: https://…; needed at first. The server decides which addresses it sends to.
            headers: Sent with each request.
            mode: What a body holds: "raw" (at first), the data as it is; "standard", an object with type, timestamp and data;
                "sequin", one with data and key; "batch", several messages as {"data": […]}.
            batch_size: In mode "batch", how many messages a request has at most; at first 100.
            timeout: How long an answer may take, 1 to 120 seconds; at first 20. The consumer's `ack_wait` becomes 15 seconds
                more, if it is less.
            concurrency: How many requests a process has open at once; at first 10.
            max_rate: Requests per second, of all processes together; 0 sets no limit.
            retry_schedule: How long a message waits after its first, second, … failure; the last repeats. Empty takes the
                consumer's `backoff` and, if it has none, what suits its order: up to a day in order "none", up to 3 minutes in
                the others, where later messages wait.
            permanent_statuses: Answers after which a message becomes a dead letter at once, such as 400 and 422.
            keep_successes: Keep attempts that succeeded, too.

        Returns:
            The secret that requests are signed with, if the endpoint is new. It is shown this once.

        Raises:
            InvalidInput: A value is not allowed.
            NotFound: The stream or the consumer does not exist.
            Conflict: It is a group.
        """
        call = operations.set_endpoint(
            self._stream,
            self._consumer,
            url=url,
            headers=headers,
            mode=mode,
            batch_size=batch_size,
            timeout=timeout,
            concurrency=concurrency,
            max_rate=max_rate,
            retry_schedule=retry_schedule,
            permanent_statuses=permanent_statuses,
            keep_successes=keep_successes,
            secret=new_secret(),
        )
        return self._transport.run(call)

    def info(self) -> PushInfo:
        """The endpoint, and how it does."""
        found = self._transport.run(operations.info(self._stream, self._consumer))
        if found is None:
            raise NotFound(f'consumer "{self._consumer}" of stream "{self._stream}" has no endpoint')
        return found

    def remove(self) -> None:
        """Send nothing more. The consumer stays where it is, and its messages can be received."""
        self._transport.run(operations.drop(self._stream, self._consumer))

    def pause(self, reason: str = "paused") -> None:
        """Send nothing more until `resume`. Messages wait; none is lost."""
        self._transport.run(operations.pause(self._stream, self._consumer, reason))

    def resume(self) -> None:
        """Send again, at once, if the endpoint is paused or rests."""
        self._transport.run(operations.resume(self._stream, self._consumer))

    def rotate_secret(self, *, keep_old_for: float | timedelta = 86400) -> str:
        """Sign with a new secret, and for a while with the old ones too.

        Args:
            keep_old_for: How long, up to 30 days; 0 ends the old ones at once.

        Returns:
            The new secret. It is shown this once.
        """
        call = operations.rotate_secret(self._stream, self._consumer, new_secret(), keep_old_for)
        return self._transport.run(call)

    def test(self, *, wait: float | timedelta = 30) -> PushAttempt:
        """Send a signed test message of type postbus.test, also while the endpoint rests or is paused.

        Args:
            wait: How many seconds to wait for the result.

        Raises:
            Unavailable: There is no result yet: perhaps nobody sends.
        """
        test_id = self.begin_test()
        limit = time.monotonic() + (as_seconds(wait) or 0.0)
        while True:
            found = self.attempts(test_id=test_id, max_attempts=1)
            if found:
                return found[0]
            if time.monotonic() >= limit:
                hint = "run a server (postbus up) or: postbus push run"
                raise Unavailable(f"test {test_id} has no result yet: perhaps nobody sends", hint)
            sleep(_LOOK_SECONDS)

    def begin_test(self) -> int:
        """Ask for a test, as `test` does, without waiting for its result.

        Returns:
            The test_id of the attempt that shows the result.
        """
        return self._transport.run(operations.test(self._stream, self._consumer))

    def attempts(
        self,
        *,
        seq: int | None = None,
        test_id: int | None = None,
        outcome: AttemptOutcome | None = None,
        before_time: datetime | None = None,
        max_attempts: int = 100,
    ) -> list[PushAttempt]:
        """Attempts to send, newest first. They are kept for six days at least; those that succeeded only with `keep_successes`.

        Args:
            seq: Only those of a message.
            test_id: Only that of a test.
            outcome: Only "acked", "failed", "dead", "returned" or "test" ones.
            before_time: Only those before this time; for the next page, the last `attempted_at`.
            max_attempts: The largest number of results, 1 to 10,000.
        """
        call = operations.attempts(
            self._stream,
            self._consumer,
            seq=seq,
            test_id=test_id,
            outcome=outcome,
            before_time=before_time,
            max_attempts=max_attempts,
        )
        return self._transport.run(call)

    def resend(
        self,
        seq: int | None = None,
        *,
        failed_since: datetime | None = None,
        rate: float | None = None,
    ) -> int:
        """Send a message again, or all that have failed since a time: those that wait for a retry, and dead letters.

        Args:
            seq: A message: also one that was sent before.
            failed_since: Instead, all that failed at or after this time.
            rate: The largest number per second; None sets no limit.

        Returns:
            How many are sent again.

        Raises:
            InvalidInput: Not exactly one of the two was given.
        """
        if rate is not None and rate <= 0:
            raise InvalidInput("rate is not above 0")
        page = 1000 if rate is None else max(1, min(1000, int(rate / 10)))
        started = time.monotonic()
        sent = 0
        while True:
            count = self.resend_page(seq, failed_since=failed_since, max_messages=page)
            sent += count
            if seq is not None or count < page:
                return sent
            if rate is not None:
                sleep(max(0.0, started + sent / rate - time.monotonic()))

    def resend_page(
        self, seq: int | None = None, *, failed_since: datetime | None = None, max_messages: int = 1000
    ) -> int:
        """Send some messages again, as `resend` does.

        Returns:
            How many; less than `max_messages` if no more are left.
        """
        call = operations.resend(
            self._stream, self._consumer, seq=seq, failed_since=failed_since, max_messages=max_messages
        )
        return self._transport.run(call)
