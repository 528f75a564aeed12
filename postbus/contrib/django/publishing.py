"""Publishing on a connection of Django: the message commits with the other writes of the request, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import connections

from postbus.codec.content import encode_headers, json_of
from postbus.contrib.django.database import database_alias

_PUBLISH: Final = (
    "select postbus.publish(%s, %s, %s::text, headers => %s::jsonb, bytes => %s, expected_type => %s, deliver_at => %s, "
    "dedup_id => %s, priority => %s)"
)


def publish(
    stream: str,
    data: Any,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    deliver_at: datetime | None = None,
    dedup_id: str | None = None,
    priority: int | None = None,
    using: str | None = None,
) -> int:
    """Publish a message in the current transaction of Django; without one, at once.

    Args:
        stream: The stream or queue, of type json; or of type bytes, if data is bytes.
        data: Its data.
        key: Its key, which decides its order.
        headers: Its headers.
        deliver_at: When it is delivered; None or a past time is now.
        dedup_id: A name for the message: within the stream's dedup window, it is published once.
        priority: 0 to 9, higher first; None is 4.
        using: The alias of the database; None is the one that has Postbus.

    Returns:
        Its seq, or the id of a scheduled message.

    Raises:
        postbus.InvalidInput: The data has no form in JSON, or a header is not a string.
        django.db.Error: Postgres refuses it; the message and hint are those of Postbus.
    """
    is_bytes = isinstance(data, bytes)
    text = None if is_bytes else json_of(data).decode()
    encoded = encode_headers(headers)
    with connections[using or database_alias()].cursor() as cursor:
        cursor.execute(
            _PUBLISH,
            [
                *(stream, key, text, None if encoded is None else encoded.decode(), data if is_bytes else None),
                *("bytes" if is_bytes else "json", deliver_at, dedup_id, priority),
            ],
        )
        return int(cursor.fetchone()[0])
