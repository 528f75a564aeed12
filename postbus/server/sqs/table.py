"""The operations of SQS, one line each. Both protocols, the check of scopes and the tests read this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from postbus.model.token import Scope
from postbus.server.sqs import moving, queues, receiving, sending, settling, shapes


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        name: Its name.
        given: The shape of its input. If that has a queue_url, the handler gets the queue.
        handler: What does it.
        scopes: A token must allow one of these on the stream of the queue. Without a queue, the handler asks.
    """

    name: str
    given: type[shapes.Shape]
    handler: Callable[..., Awaitable[Any]]
    scopes: tuple[Scope, ...]

    @property
    def is_of_queue(self) -> bool:
        return "queue_url" in self.given.__struct_fields__


_ANY: Final[tuple[Scope, ...]] = ("consume", "publish", "manage")
_ALL: Final = (
    Operation("AddPermission", shapes.AddPermission, queues.add_permission, ("manage",)),
    Operation("CancelMessageMoveTask", shapes.CancelMessageMoveTask, moving.cancel, ("manage",)),
    Operation("ChangeMessageVisibility", shapes.ChangeMessageVisibility, settling.change_visibility, ("consume",)),
    Operation("ChangeMessageVisibilityBatch", shapes.ChangeMessageVisibilityBatch, settling.change_batch, ("consume",)),
    Operation("CreateQueue", shapes.CreateQueue, queues.create_queue, ("manage",)),
    Operation("DeleteMessage", shapes.DeleteMessage, settling.delete_message, ("consume",)),
    Operation("DeleteMessageBatch", shapes.DeleteMessageBatch, settling.delete_batch, ("consume",)),
    Operation("DeleteQueue", shapes.OfQueue, queues.delete_queue, ("manage",)),
    Operation("GetQueueAttributes", shapes.GetQueueAttributes, queues.get_attributes, _ANY),
    Operation("GetQueueUrl", shapes.GetQueueUrl, queues.get_queue_url, _ANY),
    Operation("ListDeadLetterSourceQueues", shapes.ListSources, queues.list_sources, _ANY),
    Operation("ListMessageMoveTasks", shapes.ListMessageMoveTasks, moving.list_tasks, ("manage",)),
    Operation("ListQueueTags", shapes.OfQueue, queues.list_tags, _ANY),
    Operation("ListQueues", shapes.ListQueues, queues.list_queues, _ANY),
    Operation("PurgeQueue", shapes.OfQueue, queues.purge, ("manage",)),
    Operation("ReceiveMessage", shapes.ReceiveMessage, receiving.receive_message, ("consume",)),
    Operation("RemovePermission", shapes.RemovePermission, queues.remove_permission, ("manage",)),
    Operation("SendMessage", shapes.SendMessage, sending.send_message, ("publish",)),
    Operation("SendMessageBatch", shapes.SendMessageBatch, sending.send_batch, ("publish",)),
    Operation("SetQueueAttributes", shapes.SetQueueAttributes, queues.set_attributes, ("manage",)),
    Operation("StartMessageMoveTask", shapes.StartMessageMoveTask, moving.start, ("manage",)),
    Operation("TagQueue", shapes.TagQueue, queues.tag, ("manage",)),
    Operation("UntagQueue", shapes.UntagQueue, queues.untag, ("manage",)),
)
OPERATIONS: Final = {each.name: each for each in _ALL}
