"""Decodes rows of the SQL functions."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from postbus.codec import content
from postbus.model.archive import ArchiveInfo
from postbus.model.channel import ChannelLimits, ChannelState
from postbus.model.consumer import (
    ConsumerInfo,
    ConsumerStats,
    DeadLetter,
    HistoryEntry,
    PartitionStats,
    Peeked,
)
from postbus.model.delivery import Batch, Delivery
from postbus.model.errors import InvalidInput
from postbus.model.group import Claim, Fetched
from postbus.model.message import Message, Page, Scheduled
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.partitioning import priority_of
from postbus.model.pipeline import PipelineInfo
from postbus.model.recurrence import CatchUp, Recurrence
from postbus.model.schedule import ScheduleInfo, ScheduleRun
from postbus.model.sqs import ServedSqsQueue, SqsQueue
from postbus.model.stream import DataType, HorizonHolder, StreamInfo
from postbus.model.task import TaskInfo
from postbus.model.token import Token

Row = tuple[Any, ...]


def _columns(kind: type[Any], **sql_names: str) -> str:
    """The columns of a value by name, so that a newer database may have more of them, in any order."""
    return ", ".join(f"i.{sql_names.get(name, name)}" for name in kind.__dataclass_fields__)


STREAM_INFO: Final = _columns(StreamInfo)
CHANNEL_LIMITS: Final = _columns(ChannelLimits)
CHANNEL_STATE: Final = _columns(ChannelState)
CONSUMER_INFO: Final = _columns(ConsumerInfo, order="ordering")


def stream_info(row: Row) -> StreamInfo:
    return StreamInfo(**dict(zip(StreamInfo.__dataclass_fields__, row, strict=True)))


def stream_overview(row: Row) -> StreamOverview:
    return StreamOverview(**dict(zip(StreamOverview.__dataclass_fields__, row, strict=True)))


def consumer_overview(row: Row) -> ConsumerOverview:
    *figures, by_priority = row
    return ConsumerOverview(
        **dict(zip(ConsumerOverview.__dataclass_fields__, (*figures, _by_priority(by_priority)), strict=True))
    )


def _by_priority(found: dict[str, int]) -> dict[int, int]:
    """The highest first."""
    return {int(priority): found[priority] for priority in sorted(found, reverse=True)}


def channel_limits(row: Row) -> ChannelLimits:
    return ChannelLimits(**dict(zip(ChannelLimits.__dataclass_fields__, row, strict=True)))


def channel_state(row: Row) -> ChannelState:
    return ChannelState(**dict(zip(ChannelState.__dataclass_fields__, row, strict=True)))


def archive_info(row: Row) -> ArchiveInfo:
    return ArchiveInfo(**dict(zip(ArchiveInfo.__dataclass_fields__, row, strict=True)))


def pipeline_info(row: Row) -> PipelineInfo:
    return PipelineInfo(**dict(zip(PipelineInfo.__dataclass_fields__, row, strict=True)))


def task_info(row: Row) -> TaskInfo:
    return TaskInfo(**dict(zip(TaskInfo.__dataclass_fields__, row, strict=True)))


def sqs_queue(row: Row) -> SqsQueue:
    return SqsQueue(**dict(zip(SqsQueue.__dataclass_fields__, row, strict=False)))


def served_sqs_queue(row: Row) -> ServedSqsQueue:
    return ServedSqsQueue(**dict(zip(ServedSqsQueue.__dataclass_fields__, row, strict=True)))


def horizon_holder(row: Row) -> HorizonHolder:
    return HorizonHolder(**dict(zip(HorizonHolder.__dataclass_fields__, row, strict=True)))


def page(data_type: DataType, rows: Sequence[Row]) -> Page:
    """The messages of a page, and the resume token of its last row, which may have no message."""
    messages = [
        Message(
            key=key,
            data=content.decode(data_type, data, data_bytes),
            headers=headers,
            seq=seq,
            partition=partition,
            published_at=published_at,
            priority=priority_of(partition),
        )
        for seq, partition, key, data, data_bytes, headers, published_at, *_ in rows
        if seq is not None
    ]
    return Page(tuple(messages), rows[-1][7] if rows else None)


def claim(row: Row) -> Claim:
    return Claim(**dict(zip(Claim.__dataclass_fields__, row, strict=True)))


def history_entry(data_type: DataType, row: Row) -> HistoryEntry:
    seq, partition, key, data, data_bytes, headers, published_at, *rest = row
    value = None if published_at is None else content.decode(data_type, data, data_bytes)
    fields = dict(
        zip(HistoryEntry.__dataclass_fields__, (seq, partition, key, value, headers, published_at, *rest), strict=True)
    )
    return HistoryEntry(**fields)


def consumer_info(row: Row) -> ConsumerInfo:
    return ConsumerInfo(**dict(zip(ConsumerInfo.__dataclass_fields__, row, strict=True)))


def batch(data_type: DataType, rows: Sequence[Row]) -> Batch:
    """The deliveries of a receive: a row for each lease, or one row without a lease. Each row has the count of the ack."""
    deliveries: list[Delivery] = []
    leases: list[str] = []
    for _, lease, partition, seqs, attempts, keys, data, data_bytes, headers, published_at, saved in rows:
        if lease is not None:
            leases.append(lease)
            values = map(content.decode_json, data) if data_type == "json" else data_bytes or data
            if attempts is None:
                deliveries += [
                    Delivery(f"{lease}-{seq}", 1, seq, partition, key, value, header, time)
                    for seq, key, value, header, time in zip(seqs, keys, values, headers, published_at, strict=False)
                ]
            else:
                deliveries += [
                    # A last attempt is negated.
                    Delivery(f"{lease}-{seq}", abs(attempt), seq, partition, key, value, header, time, attempt < 0)
                    for seq, attempt, key, value, header, time in zip(
                        seqs, attempts, keys, values, headers, published_at, strict=False
                    )
                ]
                if saved is not None:
                    for delivery, found in zip(deliveries[-len(seqs) :], saved, strict=True):
                        if found is not None:
                            delivery.deferrals = found["deferrals"]
                            delivery.state = _state(found["state"], found["bytes"] and base64.b64decode(found["bytes"]))
    return Batch(tuple(deliveries), rows[0][0] if rows else 0, tuple(leases))


def raw_batch(_: DataType, rows: Sequence[Row]) -> Batch:
    """The deliveries of a receive with their data as it is stored: the text of JSON is not decoded."""
    return batch("text", rows)


def _state(value: Any, encoded: bytes | str | None) -> Any:
    """What was saved with a message: a JSON value or bytes. No bytes are "" in JSON."""
    return value if encoded is None else encoded or b""


def consumed(data_type: DataType, rows: Sequence[Row]) -> list[Message]:
    """The messages that a group has received: a row for each partition, or one row without messages."""
    return [message for each in ranges(data_type, rows) for message in each.messages]


def ranges(data_type: DataType, rows: Sequence[Row]) -> list[Fetched]:
    """The same, as ranges."""
    found: list[Fetched] = []
    for _, lease, partition, seqs, _, keys, data, data_bytes, headers, published_at, _ in rows:
        if lease is not None:
            values = map(content.decode_json, data) if data_type == "json" else data_bytes or data
            messages = [
                Message(
                    key=key,
                    data=value,
                    headers=header,
                    seq=seq,
                    partition=partition,
                    published_at=time,
                    priority=priority_of(partition),
                )
                for seq, key, value, header, time in zip(seqs, keys, values, headers, published_at, strict=False)
            ]
            found.append(Fetched(Claim.of(lease, partition, seqs), messages))
    return found


@dataclass(frozen=True, slots=True)
class Unfilled:
    """A recurring schedule whose times have to be worked out. Its fields are the columns of schedules_to_fill."""

    id: int
    version: int
    cron: str | None
    every: timedelta | None
    time_zone: str
    catch_up: CatchUp
    max_catch_up: int
    created_at: datetime
    filled_until: datetime
    now_at: datetime

    @property
    def recurrence(self) -> Recurrence:
        return Recurrence(self.cron, self.every, self.time_zone, self.created_at)


def schedule(row: Row) -> ScheduleInfo:
    """A recurring schedule, with its next times worked out."""
    stream, name, cron, every, time_zone, key, data, data_bytes, headers, ttl, catch_up, max_catch_up, *rest = row
    paused, problem, created_at, data_type, now_at, last_runs, priority = rest
    recurrence = Recurrence(cron, every, time_zone, created_at)
    next_at: tuple[datetime, ...] = ()
    if not paused and problem is None:
        try:
            next_at = tuple(islice(recurrence.after(now_at), 5))
        except InvalidInput as error:
            problem = error.message
    return ScheduleInfo(
        stream=stream,
        name=name,
        cron=cron,
        every=every,
        time_zone=time_zone,
        key=key,
        data=content.decode(data_type, data, data_bytes),
        headers=headers,
        ttl=ttl,
        catch_up=catch_up,
        max_catch_up=max_catch_up,
        paused=paused,
        problem=problem,
        next_at=next_at,
        last_runs=tuple(
            ScheduleRun(
                None if run["occurrence"] is None else datetime.fromisoformat(run["occurrence"]),
                datetime.fromisoformat(run["published_at"]),
                run["seq"],
            )
            for run in last_runs
        ),
        created_at=created_at,
        priority=priority,
    )


def scheduled(data_type: DataType, row: Row) -> Scheduled:
    scheduled_id, deliver_at, scheduled_at, ttl, key, data, data_bytes, headers, priority = row
    return Scheduled(
        id=scheduled_id,
        deliver_at=deliver_at,
        scheduled_at=scheduled_at,
        ttl=ttl,
        key=key,
        data=content.decode(data_type, data, data_bytes),
        headers=headers,
        priority=priority,
    )


def dead_letter(data_type: DataType, row: Row) -> DeadLetter:
    seq, partition, key, data, data_bytes, headers, published_at, attempts, reason, died_at, *saved = row
    deferrals, state, state_bytes, *_ = saved
    return DeadLetter(
        seq=seq,
        partition=partition,
        key=key,
        data=content.decode(data_type, data, data_bytes),
        headers=headers,
        published_at=published_at,
        attempts=attempts,
        reason=reason,
        died_at=died_at,
        deferrals=deferrals,
        saved_state=_state(state and content.decode_json(state), state_bytes),
    )


def peeked(data_type: DataType, row: Row) -> Peeked:
    (
        seq,
        partition,
        key,
        data,
        data_bytes,
        headers,
        published_at,
        state,
        attempts,
        until,
        reason,
        ack_id,
        last,
        *saved,
    ) = row
    deferrals, saved_state, saved_bytes, *_ = saved
    return Peeked(
        seq=seq,
        partition=partition,
        key=key,
        data=content.decode(data_type, data, data_bytes),
        headers=headers,
        published_at=published_at,
        state=state,
        attempts=attempts,
        until=until,
        reason=reason,
        ack_id=ack_id,
        last_delivered_at=last,
        deferrals=deferrals,
        saved_state=_state(saved_state and content.decode_json(saved_state), saved_bytes),
    )


def consumer_stats(rows: Sequence[Row]) -> ConsumerStats:
    """The rows of postbus.stats: one for each partition, then one for the consumer."""
    *partitions, total = rows
    _, backlog, is_exact, _, horizon, lag, oldest_unread, in_flight, waiting, dead, oldest_in_flight, *rest = total
    expired, missed, rate, by_priority = rest
    return ConsumerStats(
        backlog=backlog,
        backlog_is_exact=is_exact,
        horizon_seq=horizon,
        lag_estimate=lag,
        oldest_unread_at=oldest_unread,
        in_flight=in_flight,
        oldest_in_flight_at=oldest_in_flight,
        waiting=waiting,
        dead=dead,
        expired=expired,
        missed_estimate=missed,
        rate_estimate=rate,
        by_priority=_by_priority(by_priority),
        partitions=[
            PartitionStats(
                partition=row[0], position_seq=row[3], lag_estimate=row[5], oldest_unread_at=row[6], in_flight=row[7]
            )
            for row in partitions
        ],
    )


def token(row: Row) -> Token:
    number, name, digest, scopes, streams, rate_limit, created_at, expires_at, revoked_at = row
    return Token(
        id=number,
        name=name,
        digest=digest,
        scopes=scopes,
        streams=streams,
        rate_limit=rate_limit,
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
