"""`postbus consumer push`: the endpoint of a consumer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.global_options import Commands
from postbus.cli.options import ConsumerName, StreamName, Yes, confirm, moment, open_consumer, pairs, seconds
from postbus.model.errors import InvalidInput
from postbus.model.push import ATTEMPT_OUTCOMES, PUSH_MODES, AttemptOutcome, PushAttempt, PushMode

app = Commands("The endpoint that a consumer's messages are sent to: set, show, pause, test, send again.")
Url = Annotated[str | None, typer.Argument(help="https://…; needed at first.")]
Header = Annotated[
    list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE, sent with each request; may be repeated.")
]
Delays = Annotated[
    str | None,
    typer.Option(
        "--retry-schedule", help="How long a message waits after each failure, such as 5s,1m,10m; the last repeats."
    ),
]


@app.command("set")
def set_endpoint(
    stream: StreamName,
    consumer: ConsumerName,
    endpoint: Url = None,
    header: Header = None,
    mode: Annotated[str | None, typer.Option(help=f"What a body holds: {', '.join(PUSH_MODES)}.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="In mode batch: how many messages a request has at most.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="How long an answer may take, such as 20s.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="How many requests a process has open at once.")] = None,
    max_rate: Annotated[float | None, typer.Option(help="Requests per second; 0 sets no limit.")] = None,
    retry_schedule: Delays = None,
    permanent: Annotated[
        list[int] | None,
        typer.Option(help="An answer after which a message becomes a dead letter at once; may be repeated."),
    ] = None,
    keep_successes: Annotated[
        bool | None, typer.Option("--keep-successes/--keep-failures-only", help="Keep attempts that succeeded, too.")
    ] = None,
) -> None:
    """Send the messages of a consumer to an endpoint, or change how. What is left out stays as it is.

    Example: postbus consumer push set orders billing https://example.com/hooks --max-rate 50
    """
    with open_consumer(stream, consumer) as found:
        secret = found.push.set(
            endpoint,
            headers=pairs(header),
            mode=_mode(mode),
            batch_size=batch_size,
            timeout=seconds(timeout),
            concurrency=concurrency,
            max_rate=max_rate,
            retry_schedule=_delays(retry_schedule),
            permanent_statuses=permanent,
            keep_successes=keep_successes,
        )
    if secret is None:
        output.done(f"changed the endpoint of {stream} {consumer}", stream=stream, consumer=consumer)
        return
    output.say("the endpoint is set; its requests are signed with this secret, which is shown this once:")
    _emit_secret(secret)


@app.command("info")
def info(stream: StreamName, consumer: ConsumerName) -> None:
    """Show the endpoint of a consumer, and how it does.

    Example: postbus consumer push info orders billing
    """
    with open_consumer(stream, consumer) as found:
        shown = found.push.info()
    output.emit_one(shown)


@app.command("rm")
def rm(stream: StreamName, consumer: ConsumerName, yes: Yes = False) -> None:
    """Send nothing more, and forget the endpoint. The consumer and its messages stay.

    Example: postbus consumer push rm orders billing
    """
    confirm(f"Remove the endpoint of {stream} {consumer}, and its secrets?", yes=yes)
    with open_consumer(stream, consumer) as found:
        found.push.remove()
    output.done(f"removed the endpoint of {stream} {consumer}", stream=stream, consumer=consumer)


@app.command("pause")
def pause(
    stream: StreamName,
    consumer: ConsumerName,
    reason: Annotated[str, typer.Option(help="Why, for those who look.")] = "paused",
) -> None:
    """Send nothing more until it is resumed. Messages wait.

    Example: postbus consumer push pause orders billing --reason maintenance
    """
    with open_consumer(stream, consumer) as found:
        found.push.pause(reason)
    output.done(f"paused the endpoint of {stream} {consumer}", stream=stream, consumer=consumer)


@app.command("resume")
def resume(stream: StreamName, consumer: ConsumerName) -> None:
    """Send again, at once, if the endpoint is paused or rests.

    Example: postbus consumer push resume orders billing
    """
    with open_consumer(stream, consumer) as found:
        found.push.resume()
    output.done(f"resumed the endpoint of {stream} {consumer}", stream=stream, consumer=consumer)


@app.command("secret")
def secret(
    stream: StreamName,
    consumer: ConsumerName,
    keep_old_for: Annotated[
        str, typer.Option(help="How long the old secrets are used, too; 0 ends them at once.")
    ] = "1d",
) -> None:
    """Sign with a new secret, which is shown this once, and for a while with the old ones too.

    Example: postbus consumer push secret orders billing --keep-old-for 7d
    """
    with open_consumer(stream, consumer) as found:
        new = found.push.rotate_secret(keep_old_for=seconds(keep_old_for) or 0.0)
    _emit_secret(new)


@app.command("test")
def send_test(
    stream: StreamName,
    consumer: ConsumerName,
    wait: Annotated[str, typer.Option(help="How long to wait for the result.")] = "30s",
) -> None:
    """Send a signed test message, and show the answer.

    Example: postbus consumer push test orders billing
    """
    with open_consumer(stream, consumer) as found:
        result = found.push.test(wait=seconds(wait) or 0.0)
    if output.as_json():
        output.emit_json(_attempt(result))
    else:
        output.emit_one(_attempt(result))
    if result.error is not None:
        raise typer.Exit(1)


@app.command("attempts")
def attempts(
    stream: StreamName,
    consumer: ConsumerName,
    seq: Annotated[int | None, typer.Option(help="Only those of this message.")] = None,
    outcome: Annotated[str | None, typer.Option(help=f"Only {', '.join(ATTEMPT_OUTCOMES)}.")] = None,
    before: Annotated[str | None, typer.Option(help="Only those before this time, or longer ago than 10m.")] = None,
    count: Annotated[
        int, typer.Option("-n", "--max-attempts", min=1, max=10_000, help="The largest number of results.")
    ] = 20,
) -> None:
    """List attempts to send, newest first.

    Example: postbus consumer push attempts orders billing --outcome failed
    """
    with open_consumer(stream, consumer) as found:
        listed = found.push.attempts(seq=seq, outcome=_outcome(outcome), before_time=moment(before), max_attempts=count)
    columns = ("attempted_at", "seq", "attempt", "outcome", "status", "duration", "error", "answer")
    empty = "no attempts are kept; those that succeeded are with: postbus consumer push set … --keep-successes"
    output.emit([_attempt(each) for each in listed], columns, empty=empty)


@app.command("resend")
def resend(
    stream: StreamName,
    consumer: ConsumerName,
    seq: Annotated[int | None, typer.Argument(help="A message, also one that was sent before.")] = None,
    failed_since: Annotated[
        str | None, typer.Option(help="Instead, all that failed since this time, or in the last 10m.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="The largest number per second.")] = None,
) -> None:
    """Send a message again, or all that have failed since a time. Ctrl-C cancels the rest.

    Example: postbus consumer push resend orders billing --failed-since 2h --rate 20
    """
    if (seq is None) == (failed_since is None):
        raise InvalidInput("which messages are meant is not clear", "give a seq, or --failed-since")
    with open_consumer(stream, consumer) as found:
        sent = found.push.resend(seq, failed_since=moment(failed_since), rate=rate)
    output.emit_number(sent, f"{sent} sent again", name="count")


def _emit_secret(secret: str) -> None:
    if output.as_json():
        output.emit_json({"secret": secret})
    else:
        typer.echo(secret)


def _attempt(found: PushAttempt) -> dict[str, Any]:
    answer = None if found.answer is None else found.answer.decode(errors="replace")
    return {**asdict(found), "answer": answer}


def _mode(text: str | None) -> PushMode | None:
    if text is not None and text not in PUSH_MODES:
        raise InvalidInput(f'"{text}" is not a mode', f"choose {', '.join(PUSH_MODES)}")
    return text


def _outcome(text: str | None) -> AttemptOutcome | None:
    if text is not None and text not in ATTEMPT_OUTCOMES:
        raise InvalidInput(f'"{text}" is not an outcome', f"choose {', '.join(ATTEMPT_OUTCOMES)}")
    return text


def _delays(text: str | None) -> list[float] | None:
    if text is None:
        return None
    return [seconds(each) or 0.0 for each in text.split(",") if each]
