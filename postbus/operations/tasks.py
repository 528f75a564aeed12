"""Tasks in the background: start, list, cancel."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from postbus.codec import answers, rows
from postbus.model.task import TaskInfo, TaskKind
from postbus.operations.call import Call, Http, Route, Sql, first

START: Final = Route("POST", "/api/streams/{stream}/consumers/{consumer}/tasks", "manage")
LIST: Final = Route("GET", "/api/tasks", "manage")
CANCEL: Final = Route("POST", "/api/streams/{stream}/tasks/{task}/cancel", "manage")


def start(
    stream: str,
    consumer: str,
    kind: TaskKind,
    *,
    key_pattern: str | None,
    reason_like: str | None,
    to_stream: str | None,
    from_seq: int | None,
    to_seq: int | None,
    from_time: datetime | None,
    to_time: datetime | None,
    rate: float | None,
) -> Call[int]:
    chosen = {
        "key_pattern": key_pattern,
        "reason_like": reason_like,
        "to_stream": to_stream,
        "from_seq": from_seq,
        "to_seq": to_seq,
        "from_time": from_time,
        "to_time": to_time,
        "rate": rate,
    }
    return Call(
        Sql(
            """
select postbus.start_task($1, $2, $3, key_pattern => $4, reason_like => $5, to_stream => $6, from_seq => $7, to_seq => $8,
    from_time => $9, to_time => $10, rate => $11)
""",
            (stream, consumer, kind, *chosen.values()),
            first,
        ),
        Http(START, (stream, consumer), lambda answer: int(answer.data["id"]), body={"kind": kind, **chosen}),
    )


def list_all(stream: str | None) -> Call[list[TaskInfo]]:
    return Call(
        Sql(
            "select t.* from postbus.list_tasks($1) as t",
            (stream,),
            lambda found: [rows.task_info(row) for row in found],
        ),
        Http(LIST, (), lambda answer: [answers.task_info(each) for each in answer.data], query={"stream": stream}),
        repeatable=True,
    )


def cancel(stream: str, id: int) -> Call[bool]:
    return Call(
        Sql("select postbus.cancel_task($1, $2)", (stream, id), lambda found: bool(first(found))),
        Http(CANCEL, (stream, str(id)), lambda answer: bool(answer.data["cancelled"])),
        repeatable=True,
    )


def run() -> Call[int]:
    """One step of each task. Only those who reach Postgres ask."""
    return Call(Sql("select postbus.run_tasks()", (), first), None)
