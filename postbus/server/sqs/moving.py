"""Message move tasks: dead letters go back, by our tasks in the background."""

from __future__ import annotations

import base64
import json
from typing import Final

from postbus.model.sqs import ServedSqsQueue
from postbus.model.task import TaskInfo
from postbus.operations import sqs
from postbus.server.sqs import shapes
from postbus.server.sqs.call import SqsCall
from postbus.server.sqs.errors import SqsError, invalid, invalid_value, unsupported
from postbus.server.sqs.queue_attributes import arn_name
from postbus.server.sqs.queues import sources_of

_FASTEST: Final = 500
_MOST_LISTED: Final = 10
_STATUSES: Final = {"running": "RUNNING", "done": "COMPLETED", "cancelled": "CANCELLED", "failed": "FAILED"}


async def start(call: SqsCall, given: shapes.StartMessageMoveTask) -> shapes.TaskHandle:
    source = await _queue_of(call, given.source_arn)
    rate = given.max_number_of_messages_per_second
    if rate is not None and not 1 <= rate <= _FASTEST:
        raise invalid("MaxNumberOfMessagesPerSecond", rate, f"Must be between 1 and {_FASTEST}, if provided.")
    sources = await sources_of(call, source.name)
    if not sources:
        raise invalid_value("Source queue must be configured as a Dead Letter Queue.")
    destination = None if given.destination_arn is None else await _queue_of(call, given.destination_arn)
    if destination is not None and destination.name == source.name:
        raise invalid_value("Source queue and destination queue must be different.")
    if destination is not None and destination.data_type != source.data_type:
        raise unsupported("The two queues hold different types of data.")
    # It publishes to all of them with the rights of this request.
    for each in sources if destination is None else [destination]:
        call.demand(each.stream, "publish")
    if any(task.state == "running" for task in await _tasks_of(call, source)):
        raise unsupported(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
        )
    number = await call.bus.tasks.move(
        source.stream, source.consumer, to_stream=None if destination is None else destination.stream, rate=rate
    )
    return shapes.TaskHandle(task_handle=_handle(call, number, source))


async def cancel(call: SqsCall, given: shapes.CancelMessageMoveTask) -> shapes.CancelledTask:
    number, name = _parse(given.task_handle or "")
    source = await _queue_of(call, call.arn_of(name))
    task = next((each for each in await _tasks_of(call, source) if each.id == number), None)
    if task is None:
        raise SqsError("ResourceNotFoundException", "Task does not exist.")
    if not await call.bus.tasks.cancel(source.stream, number):
        raise unsupported("Only active tasks can be cancelled.")
    (task,) = [each for each in await _tasks_of(call, source) if each.id == number]
    return shapes.CancelledTask(approximate_number_of_messages_moved=task.done_count)


async def list_tasks(call: SqsCall, given: shapes.ListMessageMoveTasks) -> shapes.MoveTasks:
    source = await _queue_of(call, given.source_arn)
    most = 1 if given.max_results is None else given.max_results
    if not 1 <= most <= _MOST_LISTED:
        raise invalid(
            "MaxResults", most, f"Value for parameter MaxResults is invalid. Must be between 1 and {_MOST_LISTED}."
        )
    names = {queue.stream: queue.name for queue in await _destinations(call)}
    tasks = (await _tasks_of(call, source))[:most]
    return shapes.MoveTasks(results=[_shown(call, each, source, names) for each in tasks])


async def _destinations(call: SqsCall) -> list[ServedSqsQueue]:
    return await call.run(sqs.list_served())


async def _tasks_of(call: SqsCall, source: ServedSqsQueue) -> list[TaskInfo]:
    """The tasks that move messages of a queue, the newest first."""
    found = await call.bus.tasks.list_all(source.stream)
    return [each for each in found if each.kind == "move" and each.consumer == source.consumer]


async def _queue_of(call: SqsCall, arn: str | None) -> ServedSqsQueue:
    name = arn_name(arn or "")
    try:
        queue: ServedSqsQueue = await call.known.find(name)
    except SqsError:
        call.demand("", "manage")
        raise SqsError(
            "ResourceNotFoundException",
            "The resource that you specified for the SourceArn parameter doesn't exist.",
        ) from None
    call.demand(queue.stream, "manage")
    return queue


def _shown(call: SqsCall, task: TaskInfo, source: ServedSqsQueue, names: dict[str, str]) -> shapes.MoveTask:
    is_running = task.state == "running"
    destination = None if task.to_stream is None else names.get(task.to_stream)
    return shapes.MoveTask(
        task_handle=_handle(call, task.id, source) if is_running else None,
        status=_STATUSES[task.state],
        source_arn=call.arn_of(source.name),
        destination_arn=None if destination is None else call.arn_of(destination),
        max_number_of_messages_per_second=None if task.rate is None else int(task.rate),
        approximate_number_of_messages_moved=task.done_count,
        approximate_number_of_messages_to_move=task.total_estimate,
        failure_reason=task.last_error,
        started_timestamp=int(task.created_at.timestamp() * 1000),
    )


def _handle(call: SqsCall, number: int, source: ServedSqsQueue) -> str:
    return base64.b64encode(
        json.dumps({"taskId": str(number), "sourceArn": call.arn_of(source.name)}).encode()
    ).decode()


def _parse(handle: str) -> tuple[int, str]:
    try:
        found = json.loads(base64.b64decode(handle.encode(), validate=True))
        number, name = str(found["taskId"]), arn_name(str(found["sourceArn"]))
        if number.isascii() and number.isdigit() and len(number) < 19:
            return int(number), name
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise invalid("TaskHandle", handle[:200], "It is not a handle that StartMessageMoveTask has returned.")
