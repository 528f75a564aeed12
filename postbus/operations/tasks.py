"""Tasks in the background: start, list, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from postbus.codec import answers, rows
from postbus.model.task import TaskInfo, TaskKind
from postbus.operations.call import Call, Http, Route, Sql, first

_PATH: Final = "/api/streams/{stream}/consumers/{consumer}/tasks"
REDRIVE: Final = Route("POST", _PATH + "/redrive", "manage")
DISCARD: Final = Route("POST", _PATH + "/discard", "manage")
REPLAY: Final = Route("POST", _PATH + "/replay", "manage")
MOVE: Final = Route("POST", _PATH + "/move", "manage")
LIST: Final = Route("GET", "/api/tasks", "manage")
CANCEL: Final = Route("POST", "/api/streams/{stream}/tasks/{task}/cancel", "manage")


def redrive(
    stream: str,
    consumer: str,
    *,
    key_pattern: str | None,
    reason_like: str | None,
    to_stream: str | None,
    rate: float | None,
) -> Call[int]:
    chosen = {"key_pattern": key_pattern, "reason_like": reason_like, "to_stream": to_stream, "rate": rate}
    return Call(*_start(REDRIVE, stream, consumer, "redrive", chosen))


def discard(
    stream: str, consumer: str, *, key_pattern: str | None, reason_like: str | None, rate: float | None
) -> Call[int]:
    chosen = {"key_pattern": key_pattern, "reason_like": reason_like, "rate": rate}
    return Call(*_start(DISCARD, stream, consumer, "discard", chosen))


def replay(
    stream: str,
    consumer: str,
    *,
    from_seq: int | None,
    to_seq: int | None,
    from_time: datetime | None,
    to_time: datetime | None,
    key_pattern: str | None,
    rate: float | None,
) -> Call[int]:
    chosen = {
        "from_seq": from_seq,
        "to_seq": to_seq,
        "from_time": from_time,
        "to_time": to_time,
        "key_pattern": key_pattern,
        "rate": rate,
    }
    return Call(*_start(REPLAY, stream, consumer, "replay", chosen))


def move(stream: str, consumer: str, *, to_stream: str | None, rate: float | None) -> Call[int]:
    return Call(*_start(MOVE, stream, consumer, "move", {"to_stream": to_stream, "rate": rate}))


def _start(
    route: Route, stream: str, consumer: str, kind: TaskKind, chosen: Mapping[str, Any]
) -> tuple[Sql[int], Http[int]]:
    """The number of the task."""
    arguments = "".join(f", {name} => ${number}" for number, name in enumerate(chosen, start=4))
    return (
        Sql(f"select postbus.start_task($1, $2, $3{arguments})", (stream, consumer, kind, *chosen.values()), first),
        Http(route, (stream, consumer), lambda answer: int(answer.data["id"]), body=chosen),
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
