"""What becomes of received messages: they are deleted, or their visibility changes."""

from __future__ import annotations

import time
from typing import Final

from postbus.model.sqs import ServedSqsQueue
from postbus.server.sqs import batches, handles, shapes
from postbus.server.sqs.call import SqsCall
from postbus.server.sqs.errors import SqsError, invalid, missing
from postbus.server.sqs.handles import Handle

_LONGEST: Final = 43_200


async def delete_message(call: SqsCall, given: shapes.DeleteMessage, queue: ServedSqsQueue) -> None:
    handle = handles.parse(given.receipt_handle or "", queue.id)
    await _check_not_expired(call, queue, handle)
    await _delete(call, queue, [handle])


async def delete_batch(call: SqsCall, given: shapes.DeleteMessageBatch, queue: ServedSqsQueue) -> shapes.DeletedBatch:
    entries = given.entries or []
    batches.check(entries, "DeleteMessageBatchRequestEntry")
    chosen: list[Handle] = []
    done: list[shapes.DoneEntry] = []
    failed: list[shapes.FailedEntry] = []
    for entry in entries:
        try:
            if not entry.receipt_handle:
                raise missing("ReceiptHandle")
            handle = handles.parse(entry.receipt_handle, queue.id)
            await _check_not_expired(call, queue, handle)
        except SqsError as error:
            failed.append(batches.failed(entry, error))
        else:
            chosen.append(handle)
            done.append(shapes.DoneEntry(id=entry.id or ""))
    if chosen:
        await _delete(call, queue, chosen)
    return shapes.DeletedBatch(successful=done or None, failed=failed or None)


async def change_visibility(call: SqsCall, given: shapes.ChangeMessageVisibility, queue: ServedSqsQueue) -> None:
    await _change(call, queue, given.receipt_handle or "", given.visibility_timeout)


async def change_batch(
    call: SqsCall, given: shapes.ChangeMessageVisibilityBatch, queue: ServedSqsQueue
) -> shapes.ChangedBatch:
    entries = given.entries or []
    batches.check(entries, "ChangeMessageVisibilityBatchRequestEntry")
    done: list[shapes.DoneEntry] = []
    failed: list[shapes.FailedEntry] = []
    for entry in entries:
        try:
            if not entry.receipt_handle:
                raise missing("ReceiptHandle")
            await _change(call, queue, entry.receipt_handle, entry.visibility_timeout)
        except SqsError as error:
            failed.append(batches.failed(entry, error))
        else:
            done.append(shapes.DoneEntry(id=entry.id or ""))
    return shapes.ChangedBatch(successful=done or None, failed=failed or None)


async def _delete(call: SqsCall, queue: ServedSqsQueue, chosen: list[Handle]) -> None:
    count = await call.reader(queue).ack([handle.ack_id for handle in chosen])
    call.state.metrics.count_settled("acked", queue.stream, queue.consumer, count)


async def _check_not_expired(call: SqsCall, queue: ServedSqsQueue, handle: Handle) -> None:
    """Refuse a handle of a FIFO queue whose lease is over: by then another receiver may have the message.

    Raises:
        SqsError: It has expired.
    """
    if not queue.is_fifo or not handle.is_past:
        return
    # It may have been extended. A message that is gone is deleted once more without complaint.
    found = await call.reader(queue).peek_at(handle.seq)
    if found is not None and found.state != "delivered":
        raise _expired(handle)
    if found is not None and found.until is not None and found.until.timestamp() <= time.time():
        raise _expired(handle)


def _expired(handle: Handle) -> SqsError:
    return invalid("ReceiptHandle", handle.text(), "The receipt handle has expired.")


async def _change(call: SqsCall, queue: ServedSqsQueue, text: str, seconds: int | None) -> None:
    if seconds is None:
        raise missing("VisibilityTimeout")
    if not 0 <= seconds <= _LONGEST:
        raise invalid("VisibilityTimeout", seconds, "Must be >= 0 and <= 43200, if provided.")
    handle = handles.parse(text, queue.id)
    if time.time() * 1000 - handle.received_ms + seconds * 1000 > _LONGEST * 1000 + 999:
        raise invalid(
            "VisibilityTimeout", seconds, "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        )
    reader = call.reader(queue)
    if seconds:
        count = await reader.extend([handle.ack_id], ack_wait=seconds, shorten=True)
    else:
        count = await reader.nack([handle.ack_id], delay=0, reason="its visibility timeout was set to 0")
        call.state.metrics.count_settled("failed", queue.stream, queue.consumer, count)
    if count == 0:
        await _explain(call, queue, handle)


async def _explain(call: SqsCall, queue: ServedSqsQueue, handle: Handle) -> None:
    """Say why the visibility of a message cannot be changed, if somebody has to know.

    Raises:
        SqsError: It is deleted, or visible.
    """
    found = await call.reader(queue).peek_at(handle.seq)
    if found is None or found.state == "dead":
        raise invalid(
            "ReceiptHandle",
            handle.text(),
            "Message does not exist or is not available for visibility timeout change.",
        )
    if found.state != "delivered":
        raise SqsError("MessageNotInflight", "The specified message isn't in flight.")
