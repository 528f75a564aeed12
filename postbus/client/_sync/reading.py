# Generated from postbus/client/_async/reading.py by `make generate`; edit that file.

"""The part of a bus that reads a stream without consuming it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from postbus.client._sync.base import Client
from postbus.model.message import Message, Page
from postbus.operations import messages as operations


class Reading(Client):
    """The part of a bus that reads."""

    def read(
        self,
        stream: str,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key: str | None = None,
        key_pattern: str | None = None,
        partition: int | None = None,
        max_messages: int = 100,
        backwards: bool = False,
        resume: str | None = None,
    ) -> Page:
        """Read a page of a stream's messages in order of seq, or backwards. Reading changes nothing.

        The work for one page is bounded, however long the stream or rare the key. `scan` reads all pages.

        Args:
            stream: The stream's name.
            from_seq: The first seq, inclusive.
            to_seq: The last seq, inclusive.
            from_time: The earliest `published_at`, inclusive.
            to_time: The latest `published_at`, exclusive.
            key: Only messages with this key.
            key_pattern: Only messages whose key matches: "*" stands for one token, ">" at the end for one or more.
            partition: Only messages of this partition.
            max_messages: How many messages a page has at most, 1 to 10,000.
            backwards: From the newest to the oldest.
            resume: The `resume` of the previous page.

        Raises:
            InvalidInput: An argument is not valid.
            NotFound: There is no such stream.
        """
        call = operations.read(
            stream,
            from_seq=from_seq,
            to_seq=to_seq,
            from_time=from_time,
            to_time=to_time,
            key=key,
            key_pattern=key_pattern,
            partition=partition,
            max_messages=max_messages,
            backwards=backwards,
            resume=resume,
        )
        return self._transport.run(call)

    def state(
        self,
        stream: str,
        *,
        key: str | None = None,
        key_pattern: str | None = None,
        after_key: str = "",
        max_messages: int = 1000,
    ) -> list[Message]:
        """The current version of each key in a stream with one message per key, in order of the keys.

        Args:
            stream: The stream's name.
            key: Only this key.
            key_pattern: Only keys that match.
            after_key: The last key of the previous page.
            max_messages: The largest number of results, 1 to 10,000.

        Raises:
            InvalidInput: An argument is not valid.
            NotFound: There is no such stream.
            Conflict: The stream does not have one message per key.
        """
        call = operations.state(
            stream, key=key, key_pattern=key_pattern, after_key=after_key, max_messages=max_messages
        )
        return self._transport.run(call)

    def scan(
        self,
        stream: str,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key: str | None = None,
        key_pattern: str | None = None,
        partition: int | None = None,
        page_size: int = 1000,
        backwards: bool = False,
    ) -> Iterator[Message]:
        """All messages that `read` finds, page by page, up to the end of the stream."""
        resume: str | None = None
        while True:
            page = self.read(
                stream,
                from_seq=from_seq,
                to_seq=to_seq,
                from_time=from_time,
                to_time=to_time,
                key=key,
                key_pattern=key_pattern,
                partition=partition,
                max_messages=page_size,
                backwards=backwards,
                resume=resume,
            )
            for message in page:
                yield message
            if page.resume is None:
                return
            resume = page.resume
