"""Tasks in the background as pages show them: their progress, and a button that cancels one."""

from __future__ import annotations

from datetime import timedelta

from postbus.html.markup import Html, join, tag
from postbus.model.task import TaskInfo
from postbus.operations import tasks as operations
from postbus.server.console.act import Act
from postbus.server.console.forms import hidden, row_form
from postbus.server.console.parts import Column, Tone, ago, badge, card, heading, now, number, table
from postbus.server.console.visit import Visit, whole_number

_TONES: dict[str, Tone] = {"running": "good", "done": "", "cancelled": "warn", "failed": "bad"}
_SHOWN_FOR = timedelta(hours=1)


async def task_card(visit: Visit, stream: str, consumer: str) -> Html | None:
    """The consumer's tasks that run, or ended within the last hour; nothing if there are none."""
    if not visit.token.may("manage", stream):
        return None
    found = [
        each
        for each in await visit.bus.tasks.list_all(stream)
        if each.consumer == consumer and (each.ended_at is None or now() - each.ended_at < _SHOWN_FOR)
    ]
    # The card is there without tasks too, so that it can follow when one begins.
    shown = join(heading("In the background"), table(_columns(visit), found, id="task-table")) if found else ""
    return card(shown, id="tasks", live=True, class_="card" if found else "bare")


def cancel(visit: Visit, stream: str, to: str) -> Act:
    """Cancel the task that a form names."""
    id_ = whole_number(visit.form.get("task"), "the task", least=1)
    return Act(
        operations.cancel(stream, id_),
        f"bus.tasks.cancel({stream!r}, {id_})",
        lambda was_running: f"task {id_} was cancelled" if was_running else f"task {id_} had ended before",
        to,
        stream,
    )


def _columns(visit: Visit) -> list[Column[TaskInfo]]:
    return [
        Column("task", lambda each: f"{each.kind} {each.id}"),
        Column("state", _state),
        Column("progress", _progress),
        Column("moved", lambda each: number(each.done_count), is_number=True),
        Column("rate", lambda each: f"{each.rate:g} /s" if each.rate else "–", is_number=True, is_extra=True),
        Column("started", lambda each: join(ago(each.created_at), " ago"), is_extra=True),
        Column("", lambda each: _button(visit, each)),
    ]


def _state(each: TaskInfo) -> Html:
    shown = badge(each.state, _TONES[each.state])
    return join(shown, " ", each.last_error) if each.last_error else shown


def _progress(each: TaskInfo) -> Html:
    if not each.total_estimate:
        return tag("span", "–", class_="soft")
    return tag(
        "progress", max=each.total_estimate, value=min(each.done_count, each.total_estimate), aria_label="progress"
    )


def _button(visit: Visit, each: TaskInfo) -> Html:
    if each.state != "running" or not visit.may("manage", each.stream):
        return tag("span", "")
    return row_form(visit, hidden("task", each.id), acts=(("cancel-task", "cancel"),))
