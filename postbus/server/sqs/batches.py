"""What all batches have in common: their entries are checked as a whole, and fail one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from postbus.server.sqs.errors import SqsError
from postbus.server.sqs.shapes import FailedEntry

_MOST: Final = 10
_is_id: Final = re.compile(r"[A-Za-z0-9_-]{1,80}").fullmatch


class Entry(Protocol):
    """An entry of a batch."""

    @property
    def id(self) -> str | None: ...


def check(entries: Sequence[Entry] | None, element: str) -> None:
    """Refuse a batch as a whole.

    Raises:
        SqsError: It is empty or too long, or its ids are not valid or not distinct.
    """
    if not entries:
        raise SqsError("EmptyBatchRequest", f"There should be at least one {element} in the request.")
    if len(entries) > _MOST:
        raise SqsError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {_MOST}. You have sent {len(entries)}.",
        )
    seen: set[str] = set()
    for entry in entries:
        if not _is_id(entry.id or ""):
            raise SqsError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
                "It can be at most 80 letters long.",
            )
        if entry.id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry.id} repeated.")
        seen.add(entry.id or "")


def failed(entry: Entry, error: SqsError) -> FailedEntry:
    """What is said of an entry that failed."""
    return FailedEntry(id=entry.id or "", sender_fault=error.is_senders, code=error.code, message=error.message)
