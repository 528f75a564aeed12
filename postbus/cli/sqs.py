"""`postbus sqs`: queues for clients of Amazon SQS."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.global_options import Commands
from postbus.cli.options import ConsumerName, StreamName, Yes, confirm, open_bus
from postbus.model.sqs import SqsQueue

app = Commands("Queues for boto3, Celery and other clients of Amazon SQS, which the server speaks to.")


@app.command("expose")
def expose(
    stream: StreamName,
    consumer: ConsumerName,
    name: Annotated[
        str | None, typer.Option("--as", help="The queue's name; without it, that of the stream and the consumer.")
    ] = None,
) -> None:
    """Let clients of SQS use a consumer as a queue: they receive its messages, and delete them, which is an ack.

    Example: postbus sqs expose orders billing --as orders-billing
    """
    with open_bus() as bus:
        given = bus.sqs.expose(stream, consumer, name=name)
    output.done(f"exposed {stream}/{consumer}; its URL ends in: /000000000000/{given}", name=given)


@app.command("ls")
def ls() -> None:
    """List the queues that clients of SQS see, those that they have created among them.

    Example: postbus sqs ls
    """
    with open_bus() as bus:
        found = bus.sqs.list_all()
    columns = ("name", "stream", "consumer", "created_by")
    empty = "no queues yet; expose a consumer: postbus sqs expose STREAM CONSUMER, or create one by boto3"
    output.emit(found, columns, empty=empty, shown=_shown)


@app.command("hide")
def hide(
    name: Annotated[str, typer.Argument(help="The queue's name.")],
    yes: Yes = False,
) -> None:
    """Take a queue from clients of SQS. Its stream and its consumer stay.

    Example: postbus sqs hide orders-billing
    """
    confirm(f"Hide queue {name} from clients of SQS?", yes=yes)
    with open_bus() as bus:
        bus.sqs.hide(name)
    output.done(f"hid queue {name}; its stream and consumer stay", name=name)


def _shown(queue: SqsQueue) -> dict[str, Any]:
    return {**asdict(queue), "created_by": "CreateQueue" if queue.owns_stream else "postbus sqs expose"}
