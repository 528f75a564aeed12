"""Requests to one server, and the one way in which the library makes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from postbus import tracing
from postbus.http import errors
from postbus.http.answer import Answer
from postbus.http.request import Request
from postbus.http.url import checked, checked_token
from postbus.model.errors import ConnectionLost, Unavailable

# Beyond what a request may wait for messages by itself: how long an answer may take.
_ANSWER_SECONDS: Final = 60.0
# Less than the server keeps an idle connection, so that it is not closed under a request.
_IDLE_SECONDS: Final = 30.0


class AsyncHttpClient:
    """A pool of connections to a server. Safe to share between tasks.

    A connection that was closed while it was idle is replaced before it is used, so a restart of the server between two calls
    goes unnoticed. One that breaks during a call raises `ConnectionLost`, unless the call can be repeated without harm: a
    publish is never sent twice.

    Args:
        url: `http://…` or `https://…`.
        token: Goes along with each request.
        pool_size: How many idle connections are kept.
        connect_timeout: How many seconds a connection may take.
        on_request: Is shown each request before it is sent. What it raises keeps it from being sent.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        pool_size: int = 10,
        connect_timeout: float = 30,
        on_request: Callable[[Request], None] | None = None,
    ) -> None:
        self.url = checked(url)
        self.token = None if token is None else checked_token(token)
        self._connect_timeout = connect_timeout
        self._on_request = on_request
        self._http = httpx.AsyncClient(
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=pool_size, keepalive_expiry=_IDLE_SECONDS
            ),
            headers={"user-agent": "postbus"},
            # Loading certificates takes a tenth of a second, and plain HTTP has no use for them.
            verify=self.url.lower().startswith("https:"),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def close(self) -> None:
        await self._http.aclose()

    async def check(self) -> None:
        """Find out whether the server is there and can serve.

        Raises:
            Unavailable: Why it cannot.
        """
        content = (await self._send(Request(method="GET", url=f"{self.url}/health"), 0.0)).content
        try:
            health = json.loads(content)
            is_ready, reason = health["ready"], health.get("reason")
        except (ValueError, TypeError, KeyError):
            raise Unavailable(f"{self.url} is not a Postbus server") from None
        if not is_ready:
            raise Unavailable(f"the server at {self.url} is not ready: {reason}")

    async def clock(self) -> datetime | None:
        """What time it is for the server, to the second."""
        said = (await self._send(Request(method="GET", url=f"{self.url}/health"), 0.0)).headers.get("date")
        return None if said is None else parsedate_to_datetime(said)

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        wait: float = 0.0,
        repeatable: bool = False,
    ) -> Answer:
        """Make one request.

        Args:
            method: GET, POST, PATCH or DELETE.
            path: Where to, below the server's URL.
            query: Its query; None stands for what is left out.
            body: Its JSON.
            wait: How many seconds it may wait for messages.
            repeatable: Making it twice does no harm: try once more when the connection is lost on the way.

        Raises:
            postbus.Error: What the server answered, or why it did not.
        """
        headers = {} if body is None else {"content-type": "application/json"}
        if tracing.is_on():
            headers |= tracing.current_headers()
        request = Request(
            method=method,
            url=str(httpx.URL(self.url + path, params=_given(query) or None)),
            headers=headers,
            body=body,
            has_token=self.token is not None,
        )
        if self._on_request is not None:
            self._on_request(request)
        try:
            return _answer(await self._send(request, wait))
        except ConnectionLost:
            if not repeatable:
                raise
        return _answer(await self._send(request, wait))

    async def _send(self, request: Request, wait: float) -> httpx.Response:
        if self._http.is_closed:
            raise Unavailable("this bus was closed")
        authorization = {"authorization": f"Bearer {self.token}"} if request.has_token else {}
        try:
            return await self._http.request(
                request.method,
                request.url,
                headers={**request.headers, **authorization},
                content=request.body,
                timeout=httpx.Timeout(_ANSWER_SECONDS + wait, connect=self._connect_timeout),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise errors.of_transport(error, self.url) from error


def _given(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


def _answer(response: httpx.Response) -> Answer:
    try:
        # By the standard library: integers above 64 bits stay what they are.
        content = json.loads(response.content)
    except ValueError:
        content = None
    if response.status_code != 200 or not isinstance(content, dict):
        raise errors.of_answer(response.status_code, content)
    return Answer(content, int(response.headers.get("x-postbus-count", 0)))
