"""Commands of `postbus schedule` for recurring schedules."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

import typer

from postbus.cli import as_curl, output
from postbus.cli.global_options import Commands
from postbus.cli.messages import Priority, value_of
from postbus.cli.options import ExistOk, StreamName, Yes, confirm, open_bus, pairs, seconds
from postbus.model.errors import InvalidInput
from postbus.model.recurrence import CATCH_UPS, CatchUp
from postbus.model.schedule import ScheduleInfo

app = Commands("Recurring schedules: add, edit, pause, run; and messages that are scheduled once.")
Name = Annotated[str, typer.Argument(help="The schedule's name.")]
Cron = Annotated[
    str | None, typer.Option(help="A cron expression, such as '30 2 * * MON-FRI'; six fields begin with seconds.")
]
Every = Annotated[str | None, typer.Option(help="An interval instead, such as 10m.")]
Key = Annotated[str | None, typer.Option(help="The key of its messages.")]
Data = Annotated[str, typer.Argument(help="Its data: JSON, or text in a text stream.")]
NewData = Annotated[str | None, typer.Option("--data", help="Its data: JSON, or text in a text stream.")]
Header = Annotated[list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE; may be repeated.")]
Ttl = Annotated[str | None, typer.Option(help="The time to live of its messages, such as 1h.")]
_HELP_OF_CATCH_UP = f"Of times that were missed, publish: {', '.join(CATCH_UPS)}."


@app.command("add")
def add(
    stream: StreamName,
    name: Name,
    data: Data,
    cron: Cron = None,
    every: Every = None,
    time_zone: Annotated[str, typer.Option(help="The zone of the expression, such as Europe/Berlin.")] = "UTC",
    key: Key = None,
    header: Header = None,
    ttl: Ttl = None,
    catch_up: Annotated[str, typer.Option(help=_HELP_OF_CATCH_UP)] = "latest",
    max_catch_up: Annotated[int, typer.Option(help="With --catch-up all: at most so many.")] = 100,
    exist_ok: ExistOk = False,
    priority: Priority = 4,
) -> None:
    """Publish a message again and again.

    Example: postbus schedule add reports nightly '{"kind": "daily"}' --cron '30 2 * * *' --time-zone Europe/Berlin
    """
    with open_bus() as bus:
        with as_curl.preparing():
            data_type = bus.stream_info(stream).data_type
        bus.schedules.create(
            stream,
            name,
            cron=cron,
            every=seconds(every),
            time_zone=time_zone,
            key=key,
            data=value_of(data_type, data),
            headers=pairs(header),
            ttl=seconds(ttl),
            catch_up=_catch_up(catch_up),
            max_catch_up=max_catch_up,
            exist_ok=exist_ok,
            priority=priority,
        )
        with as_curl.preparing():
            next_at = bus.schedules.info(stream, name).next_at
    first = f"; it is next due at {output.cell(next_at[0])}" if next_at else ""
    output.done(f"{output.made(f'schedule {name}', exist_ok)}{first}", stream=stream, name=name)


@app.command("edit")
def edit(
    stream: StreamName,
    name: Name,
    cron: Cron = None,
    every: Every = None,
    time_zone: Annotated[str | None, typer.Option(help="The zone of the expression, such as Europe/Berlin.")] = None,
    key: Key = None,
    data: NewData = None,
    header: Header = None,
    ttl: Ttl = None,
    catch_up: Annotated[str | None, typer.Option(help=_HELP_OF_CATCH_UP)] = None,
    max_catch_up: Annotated[int | None, typer.Option(help="With --catch-up all: at most so many.")] = None,
    unset: Annotated[
        list[str] | None, typer.Option(help="Put back to none: key, headers, ttl; may be repeated.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=0, max=9, help="The priority of its messages: 0 to 9, higher first.")
    ] = None,
) -> None:
    """Change a recurring schedule. What is left out stays as it is.

    Example: postbus schedule edit reports nightly --cron '0 3 * * *'
    """
    with open_bus() as bus:
        changes: dict[str, Any] = {}
        if data is not None:
            with as_curl.preparing():
                data_type = bus.stream_info(stream).data_type
            changes["data"] = value_of(data_type, data)
        bus.schedules.alter(
            stream,
            name,
            cron=cron,
            every=seconds(every),
            time_zone=time_zone,
            key=key,
            headers=pairs(header),
            ttl=seconds(ttl),
            catch_up=None if catch_up is None else _catch_up(catch_up),
            max_catch_up=max_catch_up,
            unset=unset or (),
            priority=priority,
            **changes,
        )
    output.done(f"changed schedule {name}", stream=stream, name=name)


@app.command("info")
def info(stream: StreamName, name: Name) -> None:
    """Show a recurring schedule, its next times and its last runs.

    Example: postbus schedule info reports nightly
    """
    with open_bus() as bus:
        found = bus.schedules.info(stream, name)
    if output.as_json():
        output.emit_json(found)
        return
    output.emit_one(found, leave_out=("next_at", "last_runs"))
    for each in found.next_at:
        typer.echo(f"next  {output.cell(each)}")
    for run in found.last_runs:
        why = "run by hand" if run.occurrence is None else f"due {output.cell(run.occurrence)}"
        typer.echo(f"ran   {output.cell(run.published_at)}  seq {run.seq}  {why}")


@app.command("pause")
def pause(stream: StreamName, name: Name) -> None:
    """Stop a recurring schedule until it is resumed. Times that pass meanwhile are not published later.

    Example: postbus schedule pause reports nightly
    """
    with open_bus() as bus:
        bus.schedules.pause(stream, name)
    output.done(f"paused schedule {name}", stream=stream, name=name)


@app.command("resume")
def resume(stream: StreamName, name: Name) -> None:
    """Continue a recurring schedule from now on.

    Example: postbus schedule resume reports nightly
    """
    with open_bus() as bus:
        bus.schedules.resume(stream, name)
    output.done(f"resumed schedule {name}", stream=stream, name=name)


@app.command("run")
def run(stream: StreamName, name: Name) -> None:
    """Publish the message of a recurring schedule now. Its times stay as they are.

    Example: postbus schedule run reports nightly
    """
    with open_bus() as bus:
        seq = bus.schedules.run_now(stream, name)
    output.emit_number(seq, f"published as seq {seq}", name="seq")


@app.command("rm")
def rm(stream: StreamName, name: Name, yes: Yes = False) -> None:
    """Remove a recurring schedule. What it has published stays.

    Example: postbus schedule rm reports nightly
    """
    confirm(f"Remove schedule {name} of {stream}?", yes=yes)
    with open_bus() as bus:
        bus.schedules.drop(stream, name)
    output.done(f"removed schedule {name}", stream=stream, name=name)


def rule(found: ScheduleInfo) -> str:
    """When it recurs, for people."""
    if found.every is not None:
        return f"every {output.cell(found.every)}"
    return f"{found.cron} {found.time_zone}"


def shown(found: ScheduleInfo) -> dict[str, Any]:
    """The columns of a list."""
    state = "paused" if found.paused else found.problem or (output.cell(found.next_at[0]) if found.next_at else "-")
    last = found.last_runs[0].published_at if found.last_runs else None
    return {
        "stream": found.stream,
        "name": found.name,
        "rule": rule(found),
        "next": state,
        "last_run": last,
        "key": found.key,
        "data": json.dumps(found.data, ensure_ascii=False, default=str)[:40],
    }


def _catch_up(text: str) -> CatchUp:
    if text not in CATCH_UPS:
        raise InvalidInput(f'"{text}" is not a way to catch up', f"choose {', '.join(CATCH_UPS)}")
    return cast("CatchUp", text)
