# Generated from postbus/client/_async/sqs.py by `make generate`; edit that file.

"""The queues of a bus for clients of SQS."""

from __future__ import annotations

from postbus.client._sync.base import Client
from postbus.model.sqs import SqsQueue
from postbus.operations import sqs as operations


class Sqs(Client):
    """Shows consumers to clients of Amazon SQS as queues, which a server of Postbus serves; get it from `bus.sqs`.

    Queues that such clients create themselves, by CreateQueue, are listed too.
    """

    def expose(self, stream: str, consumer: str, *, name: str | None = None) -> str:
        """Let clients of SQS receive the messages of a consumer, and delete them, which is an ack. What they send is published.

        Args:
            stream: The stream's name.
            consumer: The consumer's name.
            name: What they call the queue: 1 to 80 letters, digits, "-" or "_"; None for the names of both. If it ends in
                ".fifo", it is a FIFO queue, and the consumer has to keep the order of keys.

        Returns:
            The name.

        Raises:
            InvalidInput: The name is not valid.
            NotFound: The stream or the consumer does not exist.
            Conflict: The name is taken, the consumer is a queue already, or this is a group.
        """
        return self._transport.run(operations.expose(stream, consumer, name))

    def hide(self, name: str) -> None:
        """Take a queue from clients of SQS. Its stream and its consumer stay.

        Raises:
            NotFound: There is no such queue.
        """
        self._transport.run(operations.hide(name))

    def list_all(self) -> list[SqsQueue]:
        """All queues that clients of SQS see, by name."""
        return self._transport.run(operations.list_all())
