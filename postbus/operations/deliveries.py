"""Deliveries: ack, nack, defer, extend, terminate. Transports implement receiving."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from postbus.codec import fields, parameters
from postbus.db import statements
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.operations.call import Call, Http, Route, Sql, counted, first

_PATH: Final = "/api/streams/{stream}/consumers/{consumer}"
RECEIVE: Final = Route("GET", _PATH + "/receive", "consume")
ACK_AND_RECEIVE: Final = Route("POST", _PATH + "/receive", "consume")
ACK: Final = Route("POST", _PATH + "/ack", "consume")
NACK: Final = Route("POST", _PATH + "/nack", "consume")
DEFER: Final = Route("POST", _PATH + "/defer", "consume")
EXTEND: Final = Route("POST", _PATH + "/extend", "consume")
TERMINATE: Final = Route("POST", _PATH + "/terminate", "consume")


def ack(stream: str, consumer: str, ids: Sequence[str]) -> Call[int]:
    return Call(
        Sql(
            "select postbus.ack($1, $2, $3::text[])",
            (stream, consumer, parameters.text_array(ids)),
            first,
            own=(stream, statements.ack_in),
        ),
        Http(ACK, (stream, consumer), counted, body={"ack_ids": ids}),
    )


def nack(
    stream: str, consumer: str, ids: Sequence[str], *, delay: Duration | None, reason: str | None, untried: bool
) -> Call[int]:
    return Call(
        Sql(
            "select postbus.nack($1, $2, $3::text[], delay => $4, reason => $5, untried => $6)",
            (stream, consumer, parameters.text_array(ids), as_timedelta(delay), reason, untried),
            first,
        ),
        Http(
            NACK,
            (stream, consumer),
            counted,
            body={
                "ack_ids": ids,
                "delay_ms": as_milliseconds(delay),
                "reason": reason,
                "untried": untried or None,
            },
        ),
        redelivers=True,
    )


def defer(
    stream: str, consumer: str, ids: Sequence[str], *, delay: Duration | None, until: datetime | None, state: Any
) -> Call[int]:
    return Call(
        Sql(
            "select postbus.defer($1, $2, $3::text[], delay => $4, until => $5, state => $6::json, state_bytes => $7)",
            (
                *(stream, consumer, parameters.text_array(ids), as_timedelta(delay), until),
                *parameters.state_parameters(state),
            ),
            first,
        ),
        Http(
            DEFER,
            (stream, consumer),
            counted,
            body={"ack_ids": ids, "delay_ms": as_milliseconds(delay), "until": until, **fields.state(state)},
            nulls=("state",) if state is None else (),
        ),
        redelivers=True,
    )


def extend(stream: str, consumer: str, ids: Sequence[str], *, ack_wait: Duration | None, shorten: bool) -> Call[int]:
    return Call(
        Sql(
            "select postbus.extend($1, $2, $3::text[], ack_wait => $4, shorten => $5)",
            (stream, consumer, parameters.text_array(ids), as_timedelta(ack_wait), shorten),
            first,
        ),
        Http(
            EXTEND,
            (stream, consumer),
            counted,
            body={"ack_ids": ids, "ack_wait_ms": as_milliseconds(ack_wait), "shorten": shorten or None},
        ),
        repeatable=True,
    )


def terminate(stream: str, consumer: str, ids: Sequence[str], *, reason: str | None) -> Call[int]:
    return Call(
        Sql(
            "select postbus.terminate($1, $2, $3::text[], reason => $4)",
            (stream, consumer, parameters.text_array(ids), reason),
            first,
        ),
        Http(TERMINATE, (stream, consumer), counted, body={"ack_ids": ids, "reason": reason}),
    )
