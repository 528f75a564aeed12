"""What an answer of an endpoint means for the message and for the endpoint."""

from __future__ import annotations

import dataclasses
import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from postbus.http.outgoing import OutgoingAnswer, OutgoingFailure
from postbus.model.push import PushEndpoint
from postbus.push.outcomes import Outcome, delay_after, of_answer, of_failure

ENDPOINT = PushEndpoint(
    stream_id=1,
    data_type="json",
    order="key",
    ack_wait=timedelta(seconds=35),
    has_backoff=False,
    url="https://example.com/",
    headers={},
    mode="raw",
    batch_size=1,
    timeout=timedelta(seconds=20),
    concurrency=1,
    max_rate=None,
    retry_schedule=(),
    permanent_statuses=(400, 422),
    keep_successes=False,
    secrets=(),
    secrets_change_in=None,
)
CHANCE = random.Random(1)


def answered(status: int, retry_after: str | None = None, *, is_resting: bool = False) -> Outcome:
    answer = OutgoingAnswer(status, b"", retry_after, None)
    return of_answer(answer, ENDPOINT, 1, is_resting=is_resting, chance=CHANCE)


def failed(trouble: Any, *, is_resting: bool = False) -> Outcome:
    return of_failure(OutgoingFailure(trouble, "why"), ENDPOINT, 1, is_resting=is_resting, chance=CHANCE)


@pytest.mark.parametrize(
    ("status", "retry_after", "kind"),
    [
        *((200, None, "ack"), (201, None, "ack"), (204, None, "ack"), (299, "5", "ack")),
        *((301, None, "fail"), (302, None, "fail"), (307, None, "fail"), (304, None, "fail")),
        *((400, None, "dead"), (422, None, "dead"), (401, None, "fail"), (404, None, "fail"), (408, None, "fail")),
        *((410, None, "return"), (429, None, "return"), (429, "5", "return"), (503, "5", "return")),
        *((500, None, "fail"), (500, "5", "fail"), (502, None, "fail"), (503, None, "fail"), (504, None, "fail")),
    ],
)
def test_each_answer_has_one_meaning(status: int, retry_after: str | None, kind: str) -> None:
    outcome = answered(status, retry_after)
    assert outcome.kind == kind
    assert outcome.is_failure == (kind in ("fail", "dead"))
    assert (outcome.rest is not None) == (status == 429 or (status == 503 and retry_after is not None))
    assert (outcome.pause is not None) == (status == 410)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 1), ("7", 7), ("999999999999", 3600), ("-1", 10), ("1.5", 10), ("soon", 10), ("٣", 10), ("", 10)),
    ],
)
def test_a_rest_is_as_long_as_asked_within_bounds(text: str, seconds: float) -> None:
    assert answered(429, text).rest == pytest.approx(seconds, abs=2)


@pytest.mark.parametrize(("late", "seconds"), [(60, 60), (-86_400, 1), (86_400, 3600)])
def test_a_rest_may_be_given_as_a_date(late: float, seconds: float) -> None:
    text = format_datetime(datetime.now(UTC) + timedelta(seconds=late), usegmt=True)
    assert answered(429, text).rest == pytest.approx(seconds, abs=3)


def test_a_message_that_never_left_does_not_count_and_one_that_got_no_answer_does() -> None:
    assert (failed("unreachable").kind, failed("unreachable").is_unreachable) == ("return", True)
    assert (failed("timeout").kind, failed("broken").kind) == ("fail", "fail")
    refused = failed("refused")
    assert (refused.kind, refused.pause, refused.is_failure) == ("return", "why", False)


def test_while_the_endpoint_rests_its_own_failures_do_not_count() -> None:
    assert [answered(status, is_resting=True).kind for status in (502, 503, 504)] == ["return"] * 3
    assert failed("timeout", is_resting=True).kind == "return"
    # A message that it refuses is another matter: it must not be tried first for ever.
    assert answered(500, is_resting=True).kind == "fail"


def test_delays_grow_as_the_order_suggests_and_vary_by_a_fifth() -> None:
    def delays(**changes: Any) -> list[float]:
        endpoint = dataclasses.replace(ENDPOINT, **changes)
        found = [delay_after(endpoint, attempt, CHANCE) for attempt in range(1, 13)]
        return [-1.0 if each is None else each.total_seconds() for each in found]

    for found, usual in (
        (delays(), [5, 10, 20, 40, 80, 160, *[180] * 6]),
        (delays(order="none"), [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, *[86400] * 4]),
        (delays(retry_schedule=[timedelta(seconds=2), timedelta(seconds=4)], has_backoff=True), [2, *[4] * 11]),
    ):
        assert all(0.8 * wanted <= each <= 1.2 * wanted for each, wanted in zip(found, usual, strict=True))
    assert delays(has_backoff=True) == [-1.0] * 12
