"""`postbus dead`: dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postbus.cli import output, standing, tasks
from postbus.cli.global_options import Commands, current
from postbus.cli.options import (
    AnyStream,
    KeyPattern,
    StreamName,
    Yes,
    complete_consumer,
    confirm,
    has_json_texts,
    open_bus,
    open_consumer,
)
from postbus.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from postbus import Consumer
    from postbus.client._sync.tasks import Tasks
    from postbus.model.overview import ConsumerOverview

app = Commands("Dead letters: list, redrive, discard.")
AnyConsumer = Annotated[
    str | None, typer.Argument(help="The consumer's name; all consumers without one.", autocompletion=complete_consumer)
]
OneConsumer = Annotated[
    str | None, typer.Argument(help="The consumer's name. A queue needs none.", autocompletion=complete_consumer)
]
Seqs = Annotated[list[int] | None, typer.Option("--seq", help="Only the dead letter with this seq; may be repeated.")]
Reason = Annotated[
    str | None, typer.Option(help="Only dead letters whose reason matches this SQL LIKE pattern, such as 'timeout%'.")
]

Rate = Annotated[float | None, typer.Option(help="The largest number of messages per second.")]
Background = Annotated[
    bool, typer.Option("--background", help="Let the server, or whoever does the upkeep, do it; see: postbus task ls.")
]


@app.command("ls")
def ls(
    stream: AnyStream = None,
    consumer: AnyConsumer = None,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    after_seq: Annotated[int, typer.Option("--after", help="Only those after this seq.")] = 0,
    count: Annotated[
        int, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")
    ] = 100,
) -> None:
    """List dead letters; without a consumer, the consumers that have some.

    Example: postbus dead ls orders billing --reason 'timeout%'
    """
    if stream is None or consumer is None:
        if seqs or key_pattern or reason or after_seq:
            raise InvalidInput(
                "which dead letters are meant takes a consumer", "postbus dead ls orders billing --seq 17"
            )
        with open_bus() as bus:
            with_dead = [each for each in bus.consumer_overview(stream) if each.dead]
        of_consumers = ("stream", "consumer", "dead", "backlog")
        output.emit(with_dead, of_consumers, empty="no dead letters", shown=_consumer)
        return
    columns: tuple[str, ...] = ("seq", "died_at", "attempts", "reason", "key", "data")
    with open_consumer(stream, consumer) as found:
        letters = found.dead_letters(
            seqs=seqs, key_pattern=key_pattern, reason_like=reason, after_seq=after_seq, max_messages=count
        )
        quoted = has_json_texts(found, stream, letters)
    if any(each.deferrals for each in letters):
        columns += ("deferrals", "saved_state")
    output.emit(letters, columns, empty="no dead letters", quoted=quoted)


@app.command("redrive")
def redrive(
    stream: StreamName,
    consumer: OneConsumer = None,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    to_stream: Annotated[str | None, typer.Option("--to", help="Publish them to this stream instead.")] = None,
    rate: Rate = None,
    background: Background = False,
) -> None:
    """Deliver dead letters again, or publish them to another stream.

    Example: postbus dead redrive orders billing --rate 100
    """
    count = 0
    with _open(stream, consumer) as found:
        if background:
            _refuse_seqs(seqs)
            task = _tasks(found).redrive(
                stream, found.name, key_pattern=key_pattern, reason_like=reason, to_stream=to_stream, rate=rate
            )
            tasks.started(task)
            return
        steps = found.redrive_steps(
            seqs=seqs, key_pattern=key_pattern, reason_like=reason, to_stream=to_stream, rate=rate
        )
        for count in output.with_progress(steps, "message"):  # noqa: B007
            pass
    output.emit_number(count, f"redrove {output.counted(count, 'dead letter')}", name="redriven")


@app.command("discard")
def discard(
    stream: StreamName,
    consumer: OneConsumer = None,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    yes: Yes = False,
    rate: Rate = None,
    background: Background = False,
) -> None:
    """Remove dead letters.

    Example: postbus dead discard orders billing --yes
    """
    with _open(stream, consumer) as found:
        if not yes and not current().as_curl:
            found.info()
            confirm(f"Remove dead letters of {consumer or stream} for good?", yes)
        if background:
            _refuse_seqs(seqs)
            task = _tasks(found).discard(stream, found.name, key_pattern=key_pattern, reason_like=reason, rate=rate)
            tasks.started(task)
            return
        if rate is not None:
            raise InvalidInput("a rate goes with --background", "add --background, or leave --rate out")
        count = found.discard(seqs=seqs, key_pattern=key_pattern, reason_like=reason)
    output.emit_number(count, f"discarded {output.counted(count, 'dead letter')}", name="discarded")


def _tasks(consumer: Consumer) -> Tasks:
    from postbus.client._sync.tasks import Tasks

    return Tasks(consumer.transport)


def _refuse_seqs(seqs: list[int] | None) -> None:
    if seqs:
        raise InvalidInput("--seq does not go with --background", "leave --background out: a few are done at once")


@contextmanager
def _open(stream: str, consumer: str | None) -> Iterator[Consumer]:
    """The consumer, which has the name of its stream in a queue."""
    try:
        with open_consumer(stream, consumer or stream) as found:
            yield found
    except NotFound as error:
        if consumer is None and error.message.startswith('consumer "'):
            raise InvalidInput(
                f"name a consumer: stream {stream} is not a queue",
                f"see which have dead letters: postbus dead ls {stream}",
            ) from error
        raise


def _consumer(found: ConsumerOverview) -> dict[str, Any]:
    return {"consumer": found.name, **standing.consumer(found)}
