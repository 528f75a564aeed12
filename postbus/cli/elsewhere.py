"""Where commands are that people look for in another place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OF_ITS_CONSUMER: Final = (
    "edit", "extend", "history", "pause", "peek", "peek-at", "replay", "resume", "seek", "terminate", "wait",
)  # fmt: skip
_READ: Final = "postbus stream read STREAM"
_SEND: Final = "postbus message send STREAM KEY DATA"
_RECEIVE: Final = "postbus receive STREAM CONSUMER"
_ACK: Final = "postbus consumer ack STREAM CONSUMER ACK_ID"
_DEAD: Final = "postbus dead ls STREAM CONSUMER"
_REDRIVE: Final = "postbus dead redrive STREAM CONSUMER"

# By the name of the group; the command itself has none.
PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "send": _SEND,
        "publish": _SEND,
        "read": _READ,
        "ack": _ACK,
        "redrive": _REDRIVE,
        "ls": "postbus stream ls",
        "list": "postbus stream ls",
        "start": "postbus up",
        "serve": "postbus up",
        "server": "postbus up",
        "status": "postbus doctor",
    },
    "stream": {"send": _SEND, "publish": _SEND, "receive": _RECEIVE, "observe": "postbus observe STREAM"},
    "message": {"read": _READ, "ls": _READ, "list": _READ, "receive": _RECEIVE, "ack": _ACK},
    "consumer": {"redrive": _REDRIVE, "dead": _DEAD},
    "queue": {
        **{name: f"postbus consumer {name} QUEUE QUEUE (its consumer has its name)" for name in _OF_ITS_CONSUMER},
        "dead": "postbus dead ls QUEUE QUEUE (its consumer has its name)",
        "redrive": "postbus dead redrive QUEUE",
        "discard": "postbus dead discard QUEUE",
        "read": "postbus stream read QUEUE",
        "purge": "postbus stream purge QUEUE",
    },
}  # fmt: skip


def place_of(group: str, command: str) -> str | None:
    """How to write a command that this group does not have; None if nothing is known."""
    return PLACES.get(group, {}).get(command)
