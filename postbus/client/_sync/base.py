# Generated from postbus/client/_async/base.py by `make generate`; edit that file.

"""The base of a bus's parts: its transport."""

from __future__ import annotations

from postbus.transport._sync.base import Transport


class Client:
    """Runs operations by a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def transport(self) -> Transport:
        """The transport that runs its operations."""
        return self._transport
