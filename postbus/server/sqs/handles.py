"""Receipt handles: which queue, which delivery, and until when it was leased at first."""

from __future__ import annotations

import base64
import binascii
import struct
import time
import zlib
from dataclasses import dataclass
from typing import Final

from postbus.server.sqs.errors import SqsError

_VERSION: Final = 1
# Version, queue, token of the lease, seq, received at and leased until in milliseconds, checksum.
_FORMAT: Final = struct.Struct(">BIQQQQ")
_CHECKSUM: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Handle:
    """One delivery.

    Attributes:
        queue_id: The queue's number.
        ack_id: The delivery's ack id.
        seq: The message's seq.
        received_ms: When it was received.
        until_ms: Until when it was leased then.
    """

    queue_id: int
    ack_id: str
    seq: int
    received_ms: int
    until_ms: int

    @property
    def is_past(self) -> bool:
        """Whether the first lease is over; it may have been extended."""
        return time.time() * 1000 > self.until_ms

    def text(self) -> str:
        token, _, seq = self.ack_id.partition("-")
        packed = _FORMAT.pack(_VERSION, self.queue_id, int(token, 16), int(seq), self.received_ms, self.until_ms)
        return base64.urlsafe_b64encode(packed + _CHECKSUM.pack(zlib.crc32(packed))).decode().rstrip("=")


def parse(text: str, queue_id: int) -> Handle:
    """A handle of a queue.

    Raises:
        SqsError: It is none of that queue.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        packed, checksum = raw[: _FORMAT.size], raw[_FORMAT.size :]
        version, queue, token, seq, received, until = _FORMAT.unpack(packed)
        is_ours = _CHECKSUM.unpack(checksum) == (zlib.crc32(packed),) and version == _VERSION and queue == queue_id
    except (ValueError, binascii.Error, struct.error):
        is_ours = False
    if not is_ours:
        raise SqsError(
            "ReceiptHandleIsInvalid", f'The input receipt handle "{text[:200]}" is not a valid receipt handle.'
        )
    return Handle(queue, f"{token:016x}-{seq}", seq, received, until)
