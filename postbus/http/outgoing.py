"""Requests to addresses that users of the server have chosen, and the only module that imports aiohttp.

Each name is looked up once, all its addresses are checked, and a socket is made only for an address that is allowed: so what is
checked is what is connected to, whatever the name says a moment later. There are no redirects, proxies of the environment, or
cookies.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from postbus.http.guard import Guard, Refused

Trouble = Literal["refused", "unreachable", "timeout", "broken"]

_MOST_BYTES: Final = 64 * 1024
_KEPT_BYTES: Final = 1024
# A connection that broke so quickly was probably idle for too long: once more, at once.
_QUICK_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 15.0
_CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    """What an endpoint answered.

    Attributes:
        status: The HTTP status.
        body: The whole body if it is short, else its beginning.
        retry_after: The header of that name.
        address: The address that the request was sent to.
        is_whole: The body is all that was sent.
    """

    status: int
    body: bytes
    retry_after: str | None
    address: str | None
    is_whole: bool = True

    @property
    def beginning(self) -> bytes:
        """The first KiB of the body."""
        return self.body[:_KEPT_BYTES]


class OutgoingFailure(Exception):
    """There is no answer.

    Attributes:
        trouble: refused (it may not be sent there), unreachable (nothing was sent), timeout, or broken (on the way).
        reason: Why, in one line.
    """

    def __init__(self, trouble: Trouble, reason: str) -> None:
        # What an endpoint has sent may be part of it, and Postgres takes no NUL.
        self.reason = "".join(each if each.isprintable() else "?" for each in reason)
        super().__init__(self.reason)
        self.trouble = trouble


class CheckingResolver(AbstractResolver):
    """Looks up names, and refuses a name of which any address is refused."""

    def __init__(self, guard: Guard, resolver: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._resolver = resolver or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            self._guard.check_address(each["host"])
        return found

    async def close(self) -> None:
        await self._resolver.close()


class Outgoing:
    """Sends requests. It belongs to one event loop.

    Args:
        guard: Decides where to.
        resolver: Looks up names instead of the system.
    """

    def __init__(self, guard: Guard, *, resolver: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._context = ssl.create_default_context()
        self._guarded = self._session(CheckingResolver(guard, resolver), is_checked=True)
        # For names that are allowed whatever their addresses are.
        self._trusting = self._session(resolver, is_checked=False)

    def _session(self, resolver: AbstractResolver | None, *, is_checked: bool) -> aiohttp.ClientSession:
        def checked_socket(address: Any) -> socket.socket:
            family, kind, protocol, _, place = address
            if is_checked:
                self._guard.check_address(place[0])
            return socket.socket(family, kind, protocol)

        connector = aiohttp.TCPConnector(
            limit=0,
            resolver=resolver,
            use_dns_cache=False,
            keepalive_timeout=_IDLE_SECONDS,
            ssl=self._context,
            socket_factory=checked_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            response_class=_Response,
            skip_auto_headers=("accept", "accept-encoding", "user-agent"),
        )

    async def close(self) -> None:
        await self._guarded.close()
        await self._trusting.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> OutgoingAnswer:
        """Send one request.

        Raises:
            OutgoingFailure: There is no answer.
        """
        try:
            self._guard.check_url(url)
        except Refused as error:
            raise OutgoingFailure("refused", error.message) from None
        host = urlsplit(url).hostname or ""
        session = self._trusting if self._guard.is_trusted(host) else self._guarded
        started = time.monotonic()
        try:
            return await self._send(session, url, headers, body, timeout)
        except OutgoingFailure as failure:
            spent = time.monotonic() - started
            if failure.trouble not in ("unreachable", "broken") or spent >= min(_QUICK_SECONDS, timeout / 2):
                raise
        return await self._send(session, url, headers, body, timeout - spent)

    async def _send(
        self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> OutgoingAnswer:
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=min(_CONNECT_SECONDS, timeout))
        try:
            async with session.post(
                URL(url, encoded=True), data=body, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                return await _answer(response)
        except Refused as error:
            raise OutgoingFailure("refused", error.message) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise OutgoingFailure("unreachable", _why(error) or "no connection in time") from error
        except TimeoutError as error:
            raise OutgoingFailure("timeout", f"no answer within {timeout:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise OutgoingFailure("broken", _why(error)) from error


class _Response(aiohttp.ClientResponse):
    """Notes the address that it came from: a short response has left its connection before anybody can ask."""

    peer: tuple[Any, ...] | None = None

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        if connection.transport is not None:
            self.peer = connection.transport.get_extra_info("peername")
        return await super().start(connection)


async def _answer(response: aiohttp.ClientResponse) -> OutgoingAnswer:
    peer = response.peer if isinstance(response, _Response) else None
    parts: list[bytes] = []
    size = 0
    try:
        while size < _MOST_BYTES and (part := await response.content.read(_MOST_BYTES - size)):
            parts.append(part)
            size += len(part)
    except (TimeoutError, aiohttp.ClientError):
        # The status has arrived, and it says how it went.
        pass
    is_whole = response.content.at_eof() and response.content.exception() is None
    if not is_whole:
        response.close()
    return OutgoingAnswer(
        response.status,
        b"".join(parts),
        response.headers.get("retry-after"),
        None if peer is None else str(peer[0]),
        is_whole,
    )


def _why(error: Exception) -> str:
    """The reason without the URL, which may hold secrets."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be looked up"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not valid: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or "it cannot be reached"
    return f"{type(error).__name__}: {error}"[:200] if str(error) else type(error).__name__
