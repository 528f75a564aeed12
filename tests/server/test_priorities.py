"""Priorities over HTTP: sent, shown, refused, counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Stream
from tests.server.serving import Api
from tests.waiting import until


def publish(api: Api, orders: Stream, *messages: dict[str, Any], **more: Any) -> Any:
    return api.data("POST", f"{orders.path}/messages", {"messages": messages, **more})


def test_messages_are_received_by_priority_and_show_it(api: Api, orders: Stream) -> None:
    publish(api, orders, {"key": "a", "data": 1}, {"key": "b", "data": 2, "priority": 9})
    (received,) = orders.receive()
    assert (received["message"]["data"], received["message"]["priority"]) == (2, 9)
    # The default is left out.
    read = api.data("GET", f"{orders.path}/messages")
    assert [each.get("priority") for each in read] == [None, 9]


@pytest.mark.parametrize("priority", [10, -1, 4.5, "high", None])
def test_a_priority_out_of_range_is_refused_by_its_field(api: Api, orders: Stream, priority: Any) -> None:
    body = {"messages": [{"key": "a", "data": 1}, {"key": "b", "data": 2, "priority": priority}]}
    answer = api.post(f"{orders.path}/messages", body)
    assert answer.status_code in (400, 422)
    assert "messages[1].priority" in answer.text
    assert api.data("GET", f"{orders.path}/messages") == []


def test_one_request_that_is_refused_does_not_fail_those_that_share_its_statement(api: Api, orders: Stream) -> None:
    api.data("POST", f"{orders.path}/consumers", {"name": "whole", "order": "partition"})
    answer = api.post(f"{orders.path}/messages", {"messages": [{"key": "a", "data": 1, "priority": 9}]})
    assert answer.status_code == 409
    assert 'consumer \\"whole\\" reads the stream in order \\"partition\\"' in answer.text
    publish(api, orders, {"key": "a", "data": 2})


def test_metrics_and_stats_have_the_levels(api: Api, orders: Stream) -> None:
    publish(api, orders, *({"key": f"k{n}", "data": n, "priority": n % 2 * 9} for n in range(6)))
    (consumer,) = api.data("GET", f"{orders.path}/overview")
    assert consumer["by_priority"] == {"9": 3, "0": 3, "4": 0}

    def is_told() -> bool:
        lines = api.get("/metrics").text.splitlines()
        mine = [line for line in lines if "messages_by_priority{" in line and f'stream="{orders.name}"' in line]
        return any('priority="9"' in line and line.endswith(" 3.0") for line in mine)

    until(is_told, "the metrics have the levels")
