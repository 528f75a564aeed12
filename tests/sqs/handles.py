"""What a receipt handle says of a delivery."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from postbus.model.delivery import Delivery
from postbus.server.sqs import handles


def delivery_of(message: dict[str, Any]) -> Delivery:
    """The delivery that a received message is. Its time is that of the receive, as the server saw it."""
    text = message["ReceiptHandle"]
    queue_id = int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[1:5])
    handle = handles.parse(text, queue_id)
    return Delivery(
        ack_id=handle.ack_id,
        attempt=int(message["Attributes"]["ApproximateReceiveCount"]),
        seq=handle.seq,
        partition=0,
        key=message["Attributes"].get("MessageGroupId"),
        data=message["Body"],
        headers=None,
        published_at=datetime.fromtimestamp(handle.received_ms / 1000, UTC),
    )
