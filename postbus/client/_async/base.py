"""The base of a bus's parts: its transport."""

from __future__ import annotations

from postbus.transport._async.base import AsyncTransport


class AsyncClient:
    """Runs operations by a transport."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    @property
    def transport(self) -> AsyncTransport:
        """The transport that runs its operations."""
        return self._transport
