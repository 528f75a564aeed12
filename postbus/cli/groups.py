"""`postbus group`: groups, which are read by position: claim, fetch, commit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import as_curl, consumer_settings, output, standing
from postbus.cli.consumer_settings import Start
from postbus.cli.deliveries import Wait
from postbus.cli.global_options import Commands, current
from postbus.cli.options import AnyStream, ExistOk, GroupName, NewName, StreamName, Yes, confirm, open_bus, seconds
from postbus.cli.setting_options import with_settings
from postbus.model.group import Claim
from postbus.model.settings import ConsumerSettings

app = Commands("Groups, read by position: add, list, show, remove, claim, fetch, commit.")

Tokens = Annotated[list[str], typer.Argument(help="The tokens of claimed ranges.")]
_GONE = "the others had been committed or released, or had expired and gone to another worker"
_COLUMNS = ("partition", "from_seq", "to_seq", "message_count", "token", "deadline")


@app.command("add")
@with_settings(ConsumerSettings, only=("keep_unread", "expire_after"), is_new=True)
def add(
    stream: StreamName, group: NewName, settings: dict[str, Any], start: Start = None, exist_ok: ExistOk = False
) -> None:
    """Create a group.

    Example: postbus group add orders readers --from latest
    """
    settings |= consumer_settings.start(start)
    with open_bus() as bus:
        bus.create_group(stream, group, exist_ok=exist_ok, **settings)
    output.done(
        f"{output.made(f'group {group}', exist_ok)}; claim with: postbus group claim {stream} {group}", created=group
    )


@app.command("ls")
def ls(stream: AnyStream = None) -> None:
    """List groups and their backlogs: of a stream, or of all.

    Example: postbus group ls orders
    """
    with open_bus() as bus:
        found = [each for each in bus.consumer_overview(stream) if each.is_group]
    columns = (*(("stream",) if stream is None else ()), "name", "backlog", "in_flight", "oldest_unread_at", "paused")
    empty = f"no groups yet; create one: postbus group add {stream or 'STREAM'} NAME"
    output.emit(found, columns, empty=empty, shown=standing.consumer)


@app.command("info")
def info(stream: StreamName, group: GroupName) -> None:
    """Show a group's progress in each partition.

    Example: postbus group info orders readers
    """
    with open_bus() as bus:
        stats = bus.group(stream, group).stats()
    if output.as_json():
        output.emit_json(stats)
        return
    output.emit_one(standing.consumer(stats), leave_out=("partitions", "waiting", "dead", "rate_estimate"))
    output.blank()
    output.emit(stats.partitions, ("partition", "position_seq", "lag_estimate", "in_flight"), empty="")


@app.command("claim")
def claim(
    stream: StreamName,
    group: GroupName,
    count: Annotated[
        int, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of messages.")
    ] = 100,
    lease: Annotated[
        str | None,
        typer.Option(
            help="Let others claim them again unless they are committed in this time, such as 30s. Without it, a claim is final."
        ),
    ] = None,
    wait: Wait = "0s",
    worker: Annotated[str | None, typer.Option(help="Only partitions of this worker.")] = None,
) -> None:
    """Claim the next messages of a group, as ranges to fetch.

    Example: postbus group claim orders readers -n 1000 --lease 1m
    """
    with open_bus() as bus:
        found = bus.group(stream, group).claim(count, lease=seconds(lease), wait=seconds(wait) or 0, worker=worker)
    output.emit(found, _COLUMNS, empty="nothing to claim")
    if found and lease is None:
        output.say("claimed at most once: without --lease nobody gets these messages again")


@app.command("fetch")
def fetch(
    stream: StreamName,
    group: GroupName,
    partition: Annotated[int, typer.Argument(help="The partition of a range.")],
    from_seq: Annotated[int, typer.Argument(help="Its first seq.")],
    to_seq: Annotated[int, typer.Argument(help="Its last seq.")],
) -> None:
    """Print the messages of a claimed range as JSON lines.

    Example: postbus group fetch orders readers 3 17 116
    """
    wanted = Claim(partition=partition, from_seq=from_seq, to_seq=to_seq, message_count=0, token=None, deadline=None)
    with open_bus() as bus:
        for message in bus.group(stream, group).fetch(wanted):
            output.emit_json(message)


@app.command("commit")
def commit(
    stream: StreamName,
    group: GroupName,
    tokens: Tokens,
    to_seq: Annotated[
        int | None, typer.Option("--to", help="Commit only up to this seq; the rest stays claimed.")
    ] = None,
) -> None:
    """Commit ranges that were claimed with a lease.

    Example: postbus group commit orders readers 1f0c9a7be2d34c55
    """
    with open_bus() as bus:
        count = bus.group(stream, group).commit(_claims(tokens), to_seq=to_seq)
    output.emit_share("committed", count, len(tokens), "range", others=_GONE, name="committed")


@app.command("release")
def release(stream: StreamName, group: GroupName, tokens: Tokens) -> None:
    """Release ranges that were claimed with a lease: the next claim gets them.

    Example: postbus group release orders readers 1f0c9a7be2d34c55
    """
    with open_bus() as bus:
        count = bus.group(stream, group).release(_claims(tokens))
    output.emit_share("released", count, len(tokens), "range", others=_GONE, name="released")


@app.command("seek")
def seek(
    stream: StreamName,
    group: GroupName,
    to: Annotated[str, typer.Argument(help="earliest, latest, a seq, a time, or 10m for ten minutes ago.")],
) -> None:
    """Move a group to another position. Claimed ranges are given up.

    Example: postbus group seek orders readers earliest
    """
    with open_bus() as bus:
        seq = bus.group(stream, group).seek(**consumer_settings.start(to))
    output.emit_number(seq, f"group {group} continues after seq {seq}", name="after_seq")


@app.command("rm")
def rm(stream: StreamName, group: GroupName, yes: Yes = False) -> None:
    """Remove a group.

    Example: postbus group rm orders readers --yes
    """
    with open_bus() as bus:
        if not yes and not current().as_curl:
            with as_curl.preparing():
                bus.group(stream, group).stats()
            confirm(f"Remove group {group} of {stream}?", yes)
        bus.group(stream, group).drop()
    output.done(f"removed group {group}", removed=group)


def _claims(tokens: list[str]) -> list[Claim]:
    return [Claim(partition=0, from_seq=0, to_seq=0, message_count=0, token=token, deadline=None) for token in tokens]
