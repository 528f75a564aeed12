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
    from postbus.client._async.bus import AsyncBus
    from postbus.client._async.connect import connect_async
    from postbus.client._async.consumer import AsyncConsumer
    from postbus.client._async.group import AsyncGroup
    from postbus.client._async.member import AsyncMember
    from postbus.client._async.queue import AsyncQueue
    from postbus.client._async.tokens import AsyncTokens
    from postbus.client._sync.bus import Bus
    from postbus.client._sync.connect import connect
    from postbus.client._sync.consumer import Consumer
    from postbus.client._sync.group import Group
    from postbus.client._sync.member import Member
    from postbus.client._sync.queue import Queue
    from postbus.client._sync.tokens import Tokens
    from postbus.maintenance._async.upkeep import AsyncUpkeep
    from postbus.maintenance._sync.upkeep import Upkeep
    from postbus.model.archive import ArchiveInfo
    from postbus.model.change import Change
    from postbus.model.channel import ChannelLimits, ChannelState
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
    from postbus.model.outcome import Defer, Reject, Retry, WorkSummary
    from postbus.model.overview import ConsumerOverview, StreamOverview
    from postbus.model.partitioning import partition_of
    from postbus.model.pipeline import PipelineInfo
    from postbus.model.settings import ConsumerSettings, StreamSettings
    from postbus.model.stream import HorizonHolder, StreamInfo
    from postbus.model.task import TaskInfo
    from postbus.model.token import NewToken, Token
    from postbus.worker._async.worker import AsyncWorker
    from postbus.worker._sync.worker import Worker

__version__ = "0.1.0"

_HOMES = {
    "postbus.client._async.bus": ("AsyncBus",),
    "postbus.client._async.connect": ("connect_async",),
    "postbus.client._sync.bus": ("Bus",),
    "postbus.client._sync.connect": ("connect",),
    "postbus.client._async.consumer": ("AsyncConsumer",),
    "postbus.client._async.group": ("AsyncGroup",),
    "postbus.client._sync.group": ("Group",),
    "postbus.client._async.member": ("AsyncMember",),
    "postbus.client._sync.member": ("Member",),
    "postbus.client._async.tokens": ("AsyncTokens",),
    "postbus.client._sync.tokens": ("Tokens",),
    "postbus.client._async.queue": ("AsyncQueue",),
    "postbus.client._sync.queue": ("Queue",),
    "postbus.client._sync.consumer": ("Consumer",),
    "postbus.maintenance._async.upkeep": ("AsyncUpkeep",),
    "postbus.maintenance._sync.upkeep": ("Upkeep",),
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
    "postbus.model.outcome": ("Defer", "Reject", "Retry", "WorkSummary"),
    "postbus.model.overview": ("ConsumerOverview", "StreamOverview"),
    "postbus.model.partitioning": ("partition_of",),
    "postbus.model.archive": ("ArchiveInfo",),
    "postbus.model.change": ("Change",),
    "postbus.model.channel": ("ChannelLimits", "ChannelState"),
    "postbus.model.pipeline": ("PipelineInfo",),
    "postbus.model.settings": ("ConsumerSettings", "StreamSettings"),
    "postbus.model.stream": ("HorizonHolder", "StreamInfo"),
    "postbus.model.task": ("TaskInfo",),
    "postbus.model.token": ("NewToken", "Token"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArchiveInfo",
    "AsyncBus",
    "AsyncConsumer",
    "AsyncGroup",
    "AsyncMember",
    "AsyncQueue",
    "AsyncTokens",
    "AsyncUpkeep",
    "AsyncWorker",
    "Batch",
    "Bus",
    "Change",
    "ChannelLimits",
    "ChannelState",
    "Claim",
    "Conflict",
    "ConnectionLost",
    "Consumer",
    "ConsumerInfo",
    "ConsumerOverview",
    "ConsumerSettings",
    "ConsumerStats",
    "DeadLetter",
    "Defer",
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
    "NewToken",
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
    "StreamSettings",
    "TaskInfo",
    "Token",
    "Tokens",
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
