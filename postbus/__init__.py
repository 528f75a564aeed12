"""Postbus turns the Postgres you already run into a message bus.

    import postbus

    bus = postbus.connect()                     # or postbus.connect("postgresql://…"), or "http://…" of a server
    bus.create_stream("orders")
    bus.publish("orders", key="orders.cus_a.1", data={"quantity": 4})

Names are imported when they are first used, so that a program pays only for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postbus.bus._async.bus import AsyncBus
    from postbus.bus._async.connect import connect_async
    from postbus.bus._async.consumer import AsyncConsumer
    from postbus.bus._async.group import AsyncGroup, AsyncMember
    from postbus.bus._async.queue import AsyncQueue
    from postbus.bus._async.upkeep import AsyncUpkeep
    from postbus.bus._sync.bus import Bus
    from postbus.bus._sync.connect import connect
    from postbus.bus._sync.consumer import Consumer
    from postbus.bus._sync.group import Group, Member
    from postbus.bus._sync.queue import Queue
    from postbus.bus._sync.upkeep import Upkeep
    from postbus.model.archive import ArchiveInfo
    from postbus.model.consumer import (
        ConsumerInfo,
        ConsumerStats,
        DeadLetter,
        Exponential,
        Filter,
        HistoryEntry,
        PartitionStats,
        Peeked,
    )
    from postbus.model.delivery import Batch, Delivery
    from postbus.model.errors import (
        Conflict,
        ConnectionLost,
        EmbeddedError,
        Error,
        InvalidInput,
        MigrationDue,
        NotAllowed,
        NotFound,
        StreamFull,
        TooLarge,
        Unavailable,
        WrongIsolation,
    )
    from postbus.model.group import Claim
    from postbus.model.message import Message, Page, Scheduled, Seq
    from postbus.model.outcome import Reject, Retry, WorkSummary
    from postbus.model.overview import ConsumerOverview, StreamOverview
    from postbus.model.partitioning import partition_of
    from postbus.model.pipeline import PipelineInfo
    from postbus.model.stream import HorizonHolder, StreamInfo
    from postbus.worker._async.worker import AsyncWorker
    from postbus.worker._sync.worker import Worker

__version__ = "0.1.0"

_HOMES = {
    "postbus.bus._async.bus": ("AsyncBus",),
    "postbus.bus._async.connect": ("connect_async",),
    "postbus.bus._sync.bus": ("Bus",),
    "postbus.bus._sync.connect": ("connect",),
    "postbus.bus._async.consumer": ("AsyncConsumer",),
    "postbus.bus._async.group": ("AsyncGroup", "AsyncMember"),
    "postbus.bus._sync.group": ("Group", "Member"),
    "postbus.bus._async.queue": ("AsyncQueue",),
    "postbus.bus._sync.queue": ("Queue",),
    "postbus.bus._sync.consumer": ("Consumer",),
    "postbus.bus._async.upkeep": ("AsyncUpkeep",),
    "postbus.bus._sync.upkeep": ("Upkeep",),
    "postbus.worker._async.worker": ("AsyncWorker",),
    "postbus.worker._sync.worker": ("Worker",),
    "postbus.model.consumer": (
        "ConsumerInfo",
        "ConsumerStats",
        "DeadLetter",
        "Exponential",
        "Filter",
        "HistoryEntry",
        "PartitionStats",
        "Peeked",
        "PipelineInfo",
    ),
    "postbus.model.delivery": ("Batch", "Delivery"),
    "postbus.model.errors": (
        "Conflict",
        "ConnectionLost",
        "EmbeddedError",
        "Error",
        "InvalidInput",
        "MigrationDue",
        "NotAllowed",
        "NotFound",
        "StreamFull",
        "TooLarge",
        "Unavailable",
        "WrongIsolation",
    ),
    "postbus.model.group": ("Claim",),
    "postbus.model.message": ("Message", "Page", "Scheduled", "Seq"),
    "postbus.model.outcome": ("Reject", "Retry", "WorkSummary"),
    "postbus.model.overview": ("ConsumerOverview", "StreamOverview"),
    "postbus.model.partitioning": ("partition_of",),
    "postbus.model.archive": ("ArchiveInfo",),
    "postbus.model.pipeline": ("PipelineInfo",),
    "postbus.model.stream": ("HorizonHolder", "StreamInfo"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArchiveInfo",
    "AsyncBus",
    "AsyncConsumer",
    "AsyncGroup",
    "AsyncMember",
    "AsyncQueue",
    "AsyncUpkeep",
    "AsyncWorker",
    "Batch",
    "Bus",
    "Claim",
    "Conflict",
    "ConnectionLost",
    "Consumer",
    "ConsumerInfo",
    "ConsumerOverview",
    "ConsumerStats",
    "DeadLetter",
    "Delivery",
    "EmbeddedError",
    "Error",
    "Exponential",
    "Filter",
    "Group",
    "HistoryEntry",
    "HorizonHolder",
    "InvalidInput",
    "Member",
    "Message",
    "MigrationDue",
    "NotAllowed",
    "NotFound",
    "Page",
    "PartitionStats",
    "Peeked",
    "PipelineInfo",
    "Queue",
    "Reject",
    "Retry",
    "Scheduled",
    "Seq",
    "StreamFull",
    "StreamInfo",
    "StreamOverview",
    "TooLarge",
    "Unavailable",
    "Upkeep",
    "WorkSummary",
    "Worker",
    "WrongIsolation",
    "connect",
    "connect_async",
    "partition_of",
]


def __getattr__(name: str) -> Any:
    try:
        value = getattr(import_module(_HOME_OF[name]), name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
