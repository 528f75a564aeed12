"""Commands about deliveries: receive, ack, defer, peek, seek, replay, …. `postbus receive` and `postbus queue` use them too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from postbus.cli import as_curl, output
from postbus.cli.archive_hint import say_where_older_is
from postbus.cli.consumer_settings import AckWait
from postbus.cli.consumer_settings import start as start_of
from postbus.cli.global_options import current
from postbus.cli.interrupts import until_interrupted
from postbus.cli.options import (
    ConsumerName,
    KeyPattern,
    StreamName,
    Yes,
    confirm,
    has_json_texts,
    moment,
    open_consumer,
    position,
    seconds,
)
from postbus.model.amounts import DURATION
from postbus.model.errors import InvalidInput

if TYPE_CHECKING:
    from postbus import Batch, Consumer

AckIds = Annotated[list[str], typer.Argument(help="The ack ids that receive printed.")]
Count = Annotated[int, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")]
Wait = Annotated[str, typer.Option(help="How long to wait for a message, such as 10s.")]
Ack = Annotated[bool, typer.Option("--ack", help="Ack the messages after printing them.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Keep receiving until Ctrl-C.")]
Delay = Annotated[str | None, typer.Option(help="How long to wait before delivering them again, such as 1m.")]
Reason = Annotated[str | None, typer.Option(help="The reason, stored with the message.")]
DeferDelay = Annotated[str | None, typer.Option("--delay", help="How long to wait, such as 10m.")]
Until = Annotated[str | None, typer.Option(help="When to deliver them again: a time such as 2026-01-31T12:00Z.")]
SavedState = Annotated[
    str | None,
    typer.Option(
        "--state", help="What to save with each message, as JSON. null removes it; without this, the last one is kept."
    ),
]
_FOLLOW_WAIT: Final = 1.0
_COMPLETIONS: Final = {
    "done": "{consumer} has finished message {seq}",
    "dead": "message {seq} is a dead letter of {consumer}",
    "timeout": "{consumer} has not finished message {seq} in time",
}
_FOLLOW_COUNT: Final = 100


def receive(
    stream: StreamName,
    consumer: ConsumerName,
    count: Annotated[
        int | None, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")
    ] = None,
    wait: Wait = "0s",
    ack: Ack = False,
    follow: Follow = False,
    ack_wait: AckWait = None,
) -> None:
    """Receive messages. Without --ack they are leased: ack or nack them with their ack ids, or they come again.

    Example: postbus receive orders billing --follow --ack
    """
    with open_consumer(stream, consumer) as found:
        print_deliveries(found, count=count, wait=seconds(wait) or 0, ack=ack, follow=follow, ack_wait=ack_wait)


def print_deliveries(
    consumer: Consumer, *, count: int | None, wait: float, ack: bool, follow: bool, ack_wait: str | None
) -> None:
    """Receive once, or until Ctrl-C. Messages are printed before they are acked."""
    lease = seconds(ack_wait)
    if ack and current().as_curl:
        first = count or (_FOLLOW_COUNT if follow else 1)
        as_curl.show_receive_and_ack(
            lambda: consumer.receive(first, wait=_FOLLOW_WAIT if follow else wait, ack_wait=lease),
            lambda: consumer.ack(["those received"]),
        )
    if follow and not ack and not output.as_json():
        raise InvalidInput(
            "without --ack, --follow leases messages that nobody acks: each comes again, until its attempts are used up",
            f"add --ack; to look and take nothing: postbus stream read {consumer.stream} --follow",
        )
    if not follow:
        batch = consumer.receive(count or 1, wait=wait, ack_wait=lease)
        columns: tuple[str, ...] = ("ack_id", "attempt", "seq", "published_at", "key", "data")
        if any(each.deferrals for each in batch):
            columns += ("deferrals", "state")
        columns = output.with_priority(columns, batch)
        output.emit(batch, columns, empty="nothing to receive", quoted=has_json_texts(consumer, consumer.stream, batch))
        _finish(consumer, batch, ack)
        return
    with until_interrupted() as stopped:
        while not stopped:
            batch = consumer.receive(count or _FOLLOW_COUNT, wait=_FOLLOW_WAIT, ack_wait=lease)
            quoted = has_json_texts(consumer, consumer.stream, batch)
            for delivery in batch:
                output.emit_line(delivery, quoted=quoted)
            _finish(consumer, batch, ack)


def _finish(consumer: Consumer, batch: Batch, ack: bool) -> None:
    if ack and batch:
        sys.stdout.flush()
        consumer.ack(batch)


def ack(stream: StreamName, consumer: ConsumerName, ack_ids: AckIds) -> None:
    """Ack deliveries: their messages are done.

    Example: postbus consumer ack orders billing 1f0c9a7be2d34c55-17
    """
    with open_consumer(stream, consumer) as found:
        report("acked", found.ack(ack_ids), len(ack_ids))


def nack(
    stream: StreamName, consumer: ConsumerName, ack_ids: AckIds, delay: Delay = None, reason: Reason = None
) -> None:
    """Nack deliveries: their messages are delivered again.

    Example: postbus consumer nack orders billing 1f0c9a7be2d34c55-17 --delay 1m
    """
    with open_consumer(stream, consumer) as found:
        report("nacked", found.nack(ack_ids, delay=seconds(delay), reason=reason), len(ack_ids))


def defer(
    stream: StreamName,
    consumer: ConsumerName,
    ack_ids: AckIds,
    delay: DeferDelay = None,
    until: Until = None,
    state: SavedState = None,
) -> None:
    """Defer deliveries: their messages come back later, with a saved state. This counts as no attempt.

    Example: postbus consumer defer orders billing 1f0c9a7be2d34c55-17 --delay 10m --state '{"page": 7}'
    """
    if until is not None and DURATION.fullmatch(until):
        raise InvalidInput(f'--until takes a time, and "{until}" is a duration', f"write --delay {until}")
    with open_consumer(stream, consumer) as found:
        count = found.defer(ack_ids, delay=seconds(delay), until=moment(until), state=_state(state))
        report("deferred", count, len(ack_ids))


def _state(text: str | None) -> Any:
    if text is None:
        return ...
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"state is not JSON: {error}", """write it as '{"page": 7}', or a text as '"text"'"""
        ) from error


def extend(stream: StreamName, consumer: ConsumerName, ack_ids: AckIds, ack_wait: AckWait = None) -> None:
    """Lease deliveries for longer, counted from now.

    Example: postbus consumer extend orders billing 1f0c9a7be2d34c55-17 --ack-wait 10m
    """
    with open_consumer(stream, consumer) as found:
        report("extended", found.extend(ack_ids, ack_wait=seconds(ack_wait)), len(ack_ids))


def terminate(stream: StreamName, consumer: ConsumerName, ack_ids: AckIds, reason: Reason = None) -> None:
    """Make deliveries dead letters at once.

    Example: postbus consumer terminate orders billing 1f0c9a7be2d34c55-17 --reason 'cannot be parsed'
    """
    with open_consumer(stream, consumer) as found:
        report("terminated", found.terminate(ack_ids, reason=reason), len(ack_ids))


def report(verb: str, counted: int, asked: int) -> None:
    """Say how many of the given deliveries counted. Exits with 1 if not all of them did."""
    rest = (
        "" if counted >= asked else f" of {asked}; the others were already acked or nacked, or their leases had ended"
    )
    output.emit_number(counted, f"{verb} {counted}{rest}", name=verb)
    if counted < asked:
        raise typer.Exit(1)


def peek(
    stream: StreamName,
    consumer: ConsumerName,
    state: Annotated[str | None, typer.Option(help="available, delivered, waiting or dead.")] = None,
    key_pattern: KeyPattern = None,
    count: Count = 20,
    after_seq: Annotated[int, typer.Option("--after", help="Only messages after this seq.")] = 0,
) -> None:
    """Show messages as a consumer sees them, without changing anything.

    Example: postbus consumer peek orders billing --state waiting
    """
    columns: tuple[str, ...] = ("seq", "state", "attempts", "until", "key", "data", "reason")
    with open_consumer(stream, consumer) as found:
        page = found.peek(state=state, key_pattern=key_pattern, after_seq=after_seq, max_messages=count)  # type: ignore[arg-type]
        quoted = has_json_texts(found, stream, page)
    if any(each.deferrals for each in page):
        columns += ("deferrals", "saved_state")
    output.emit(page, output.with_priority(columns, page), empty="no messages", quoted=quoted)


def peek_at(
    stream: StreamName,
    consumer: ConsumerName,
    seq: Annotated[int, typer.Argument(min=1, help="The seq of the message.")],
) -> None:
    """Show one message as a consumer sees it, by its seq, without changing anything.

    Example: postbus consumer peek-at orders billing 17
    """
    with open_consumer(stream, consumer) as found:
        message = found.peek_at(seq)
    if output.as_json():
        output.emit_json(message)
    elif message is None:
        output.say(f"{consumer} has finished or skipped message {seq}, or there is no such message")
    else:
        output.emit_one(message)


def wait(
    stream: StreamName,
    consumer: ConsumerName,
    seq: Annotated[int, typer.Argument(min=1, help="The seq of the message.")],
    timeout: Annotated[str, typer.Option(help="How long to wait, such as 1m.")] = "30s",
) -> None:
    """Wait until a consumer has finished a message. Exits with 1 if it died or time was up.

    Example: postbus consumer wait orders billing 17 --timeout 1m
    """
    with open_consumer(stream, consumer) as found:
        completion = found.wait_until_done(seq, timeout=seconds(timeout) or 0)
    if output.as_json():
        output.emit_json({"seq": seq, "completion": completion})
    else:
        output.say(_COMPLETIONS[completion].format(consumer=consumer, seq=seq))
    if completion != "done":
        raise typer.Exit(1)


def history(
    stream: StreamName,
    consumer: ConsumerName,
    outcome: Annotated[str | None, typer.Option(help="acked, failed or dead.")] = None,
    before: Annotated[
        str | None,
        typer.Option(help="Only deliveries that finished before this time; a time, or 10m for ten minutes ago."),
    ] = None,
    count: Count = 100,
) -> None:
    """Show the outcomes of past deliveries, newest first. The consumer must keep a history (--keep-history).

    Example: postbus consumer history orders billing --outcome failed
    """
    with open_consumer(stream, consumer) as found:
        entries = found.history(outcome=outcome, before_time=moment(before), max_messages=count)  # type: ignore[arg-type]
    output.emit(
        entries, ("seq", "outcome", "attempt", "finished_at", "duration", "key", "last_error"), empty="no history"
    )


def seek(
    stream: StreamName,
    consumer: ConsumerName,
    to: Annotated[str, typer.Argument(help="earliest, latest, a seq, a time, or 10m for ten minutes ago.")],
    yes: Yes = False,
) -> None:
    """Move a consumer to another position. Messages in flight are given up.

    Example: postbus consumer seek orders billing 1h --yes
    """
    with open_consumer(stream, consumer) as found:
        in_flight = 0 if yes or current().as_curl else found.stats().in_flight
        if in_flight:
            confirm(f"Give up {in_flight:,} messages in flight?", yes)
        seq = found.seek(**start_of(to))
        if to not in ("earliest", "latest"):
            from_seq, from_time = position(to)
            how = f"deliver them with: postbus pipeline run replay {stream} --consumer {consumer} --from {to}"
            say_where_older_is(stream, seq=from_seq, time=from_time, how=how)
    output.emit_number(seq, f"consumer {consumer} continues after seq {seq}", name="after_seq")


def replay(
    stream: StreamName,
    consumer: ConsumerName,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq, a time, or a duration ago.")] = None,
    key_pattern: KeyPattern = None,
    rate: Annotated[float | None, typer.Option(help="The largest number of messages per second.")] = None,
) -> None:
    """Deliver a range of messages again, while the consumer continues with the rest.

    Example: postbus consumer replay orders billing --from 2h --to 1h
    """
    if start is None and end is None and key_pattern is None:
        raise InvalidInput("no messages were selected", "give --from, --to or --filter")
    (from_seq, from_time), (to_seq, to_time) = position(start), position(end)
    count = 0
    with open_consumer(stream, consumer) as found:
        steps = found.replay_steps(
            from_seq=from_seq, to_seq=to_seq, from_time=from_time, to_time=to_time, key_pattern=key_pattern, rate=rate
        )
        for count in output.with_progress(steps, "message"):  # noqa: B007
            pass
    output.emit_number(count, f"replayed {output.counted(count, 'message')}", name="replayed")


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "receive": receive,
    "ack": ack,
    "nack": nack,
    "defer": defer,
    "extend": extend,
    "terminate": terminate,
    "peek": peek,
    "peek-at": peek_at,
    "wait": wait,
    "history": history,
    "seek": seek,
    "replay": replay,
}
