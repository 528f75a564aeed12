"""`postbus dead`: dead letters."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.consumers import Consumer, Stream
from postbus.cli.options import DataDir, Json, Url, Yes, confirm, open_consumer

app = typer.Typer(help="Dead letters: list, redrive, discard.", no_args_is_help=True)
Seqs = Annotated[list[int] | None, typer.Option("--seq", help="Only this one; may be repeated.")]
KeyPattern = Annotated[str | None, typer.Option("--filter", help="Only keys that match this pattern.")]
Reason = Annotated[str | None, typer.Option(help="Only those whose reason is like this, such as 'timeout%'.")]


@app.command("ls")
def ls(
    stream: Stream,
    consumer: Consumer,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    after_seq: Annotated[int, typer.Option("--after", help="Only those behind this seq.")] = 0,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000)] = 100,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List dead letters.

    Example: postbus dead ls orders billing --reason 'timeout%'
    """
    columns = ("seq", "died_at", "attempts", "reason", "key", "data")
    with open_consumer(url, data_dir, stream, consumer) as found:
        letters = found.dead_letters(
            seqs=seqs, key_pattern=key_pattern, reason_like=reason, after_seq=after_seq, max_messages=count
        )
        output.emit(letters, columns, as_json=as_json, empty="no dead letters")


@app.command("redrive")
def redrive(
    stream: Stream,
    consumer: Consumer,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    to_stream: Annotated[str | None, typer.Option("--to", help="Publish them to this stream instead.")] = None,
    rate: Annotated[float | None, typer.Option(help="How many per second at most.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Give dead letters another chance.

    Example: postbus dead redrive orders billing --rate 100
    """
    count = 0
    with open_consumer(url, data_dir, stream, consumer) as found:
        for count in found.redrive(
            seqs=seqs, key_pattern=key_pattern, reason_like=reason, to_stream=to_stream, rate=rate
        ):
            output.say(f"{count:,} messages")
    typer.echo(count)


@app.command("discard")
def discard(
    stream: Stream,
    consumer: Consumer,
    seqs: Seqs = None,
    key_pattern: KeyPattern = None,
    reason: Reason = None,
    yes: Yes = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Remove dead letters.

    Example: postbus dead discard orders billing --yes
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        found.info()
        confirm(f"Remove dead letters of {consumer} for good?", yes)
        count = found.discard(seqs=seqs, key_pattern=key_pattern, reason_like=reason)
    typer.echo(count)
    output.say(f"discarded {count:,} dead letters")
