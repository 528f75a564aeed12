"""Queues for clients of SQS: expose, hide, list; and what the server that serves them asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from postbus.codec import answers, parameters, rows
from postbus.model.sqs import ServedSqsQueue, SqsCounts, SqsQueue
from postbus.operations.call import Call, Http, Route, Sql, first, nothing

EXPOSE: Final = Route("POST", "/api/streams/{stream}/consumers/{consumer}/sqs-queue", "manage")
LIST: Final = Route("GET", "/api/sqs-queues", "manage")
HIDE: Final = Route("DELETE", "/api/sqs-queues/{queue}", "manage", on_all_streams=True)
_FIND: Final = "select q.* from postbus.list_sqs_queues($1) as q"


def expose(stream: str, consumer: str, name: str | None) -> Call[str]:
    """The name of the queue."""
    return Call(
        Sql("select postbus.expose_sqs_queue($1, $2, $3)", (stream, consumer, name), first),
        Http(EXPOSE, (stream, consumer), lambda answer: str(answer.data["name"]), body={"name": name}),
        repeatable=True,
    )


def hide(name: str) -> Call[None]:
    return Call(Sql("select postbus.hide_sqs_queue($1)", (name,), nothing), Http(HIDE, (name,), nothing))


def list_all() -> Call[list[SqsQueue]]:
    return Call(
        Sql(_FIND, (None,), lambda found: [rows.sqs_queue(row) for row in found]),
        Http(LIST, (), lambda answer: [answers.sqs_queue(each) for each in answer.data]),
        repeatable=True,
    )


def find(name: str) -> Call[ServedSqsQueue | None]:
    """The queue with a name. Like all that follows, only the server asks."""
    return Call(
        Sql(_FIND, (name,), lambda found: rows.served_sqs_queue(found[0]) if found else None), None, repeatable=True
    )


def list_served() -> Call[list[ServedSqsQueue]]:
    return Call(Sql(_FIND, (None,), lambda found: [rows.served_sqs_queue(row) for row in found]), None, repeatable=True)


def create(name: str, streams: Sequence[str], attributes: Mapping[str, str], tags: Mapping[str, str]) -> Call[None]:
    statement = "select postbus_data.create_sqs_queue($1, $2, $3::jsonb, $4::jsonb)"
    return Call(Sql(statement, (name, parameters.text_array(streams), _json(attributes), _json(tags)), nothing), None)


def change(
    name: str,
    *,
    attributes: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    gone_tags: Sequence[str] = (),
) -> Call[None]:
    """Set attributes and tags; “” removes an attribute."""
    statement = "select postbus_data.change_sqs_queue($1, $2::jsonb, $3::jsonb, $4)"
    given = (name, _json(attributes or {}), _json(tags or {}), parameters.text_array(gone_tags))
    return Call(Sql(statement, given, nothing), None, repeatable=True)


def drop(name: str) -> Call[None]:
    return Call(Sql("select postbus_data.drop_sqs_queue($1)", (name,), nothing), None)


def purge(name: str) -> Call[bool]:
    """Whether it was purged: not within 60 seconds of the last time."""
    return Call(Sql("select postbus_data.purge_sqs_queue($1)", (name,), lambda found: bool(first(found))), None)


def count(name: str) -> Call[SqsCounts]:
    statement = "select c.* from postbus_data.count_sqs_queue($1) as c"
    return Call(Sql(statement, (name,), lambda found: SqsCounts(*found[0])), None, repeatable=True)


def _json(values: Mapping[str, str]) -> str:
    return orjson.dumps(dict(values)).decode()
