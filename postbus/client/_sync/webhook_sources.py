# Generated from postbus/client/_async/webhook_sources.py by `make generate`; edit that file.

"""The webhook sources of a bus: requests of others that become messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postbus.client._sync.base import Client
from postbus.model.errors import NotFound
from postbus.model.webhook import SECRET_MADE_FOR, WebhookKind, WebhookSourceInfo
from postbus.operations import webhook_sources as operations
from postbus.webhooks.options import check_options
from postbus.webhooks.signatures import new_secret


class WebhookSources(Client):
    """Creates, changes and lists webhook sources; get it from `bus.webhook_sources`.

    Servers receive for them at `POST /api/webhook/<name>`. A request is verified by its bytes as they were sent; then it becomes
    a message of the source's stream, with its body unchanged, and is answered once that is durable.
    """

    def create(
        self,
        name: str,
        stream: str,
        *,
        kind: WebhookKind,
        secrets: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        key: str | None = None,
        id_from: str | None = None,
        keep_headers: Sequence[str] = (),
        dedup: bool = True,
        max_body_bytes: int = 1048576,
        max_rate: float | None = None,
    ) -> str | None:
        """Create a webhook source.

        Args:
            name: Its name: 1 to 63 letters, digits, "_" or "-".
            stream: The stream that it publishes to.
            kind: Who sends, and so how requests are verified: "standard" (Standard Webhooks, also Svix), "stripe", "github",
                "shopify", "slack"; "hmac", any other signature; "basic", a user and password; "header", a token in a header;
                "none": everybody who knows the URL.
            secrets: Any of them verifies a request. Without one, a secret is made for kinds where you choose it.
            options: For "hmac": header, algorithm ("sha256"), encoding ("hex" or "base64"), prefix, template ("{body}"; also
                {timestamp}, {id}, {header:NAME}), timestamp_header, id_header. For "basic": username. For "header": header.
                Where a time is signed: tolerance, in seconds. For all: handshake ("meta", "graph", "eventgrid",
                "cloudevents", "echo", "okta", "crc" or "zoom"), verify_token (for "meta"), client_state (for "graph").
            key: What keys are made from, such as "shop.{json:/customer}.{id}"; at first "{source}.{type}.{id}". There are
                {source}, {type}, {id}, {sha256}, {header:NAME} and {json:/POINTER}.
            id_from: Where the id of an event is: "header:NAME", "json:/POINTER" or "sha256" (of the body). None takes what its
                kind says, and else the digest of the body.
            keep_headers: Which headers go along, besides those of its kind.
            dedup: Do not publish an event twice within the stream's `dedup_window`, which has to be as long as senders of the
                kind repeat what was not answered.
            max_body_bytes: The largest body, up to 26,214,400; also when it is unpacked.
            max_rate: Requests per second that each process accepts; None sets no limit.

        Returns:
            The secret, if one was made. It is shown this once.

        Raises:
            InvalidInput: A value is not allowed, or the stream's dedup_window is too short.
            NotFound: The stream does not exist.
            Conflict: The source exists.
        """
        check_options(kind, options or {}, secrets)
        call = operations.create(
            name,
            stream,
            kind=kind,
            secrets=secrets,
            options=options or {},
            key=key,
            id_from=id_from,
            keep_headers=[each.lower() for each in keep_headers],
            dedup=dedup,
            max_body_bytes=max_body_bytes,
            max_rate=max_rate,
            secret=new_secret() if not secrets and kind in SECRET_MADE_FOR else None,
        )
        return self._transport.run(call)

    def alter(
        self,
        name: str,
        *,
        stream: str | None = None,
        secrets: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        key: str | None = None,
        id_from: str | None = None,
        keep_headers: Sequence[str] | None = None,
        dedup: bool | None = None,
        max_body_bytes: int | None = None,
        max_rate: float | None = None,
        paused: bool | None = None,
    ) -> None:
        """Change a webhook source. What is None stays as it is; its kind cannot be changed. Servers notice within a second.

        Args:
            name: Its name.
            stream: See `create`.
            secrets: Replace the ones there are. To replace one without refusing a request, give both for a while.
            options: Replace the ones there are.
            key: See `create`.
            id_from: See `create`; "" takes what its kind says.
            keep_headers: See `create`.
            dedup: See `create`.
            max_body_bytes: See `create`.
            max_rate: See `create`; 0 sets no limit.
            paused: Refuse requests with 503, so that senders repeat them.

        Raises:
            InvalidInput: A value is not allowed.
            NotFound: The source or the stream does not exist.
        """
        if options is not None or secrets is not None:
            kind = (self.info(name)).kind
            if options is not None:
                check_options(kind, options, secrets or ())
            elif kind == "standard":
                check_options(kind, {}, secrets or ())
        call = operations.alter(
            name,
            stream=stream,
            secrets=secrets,
            options=options,
            key=key,
            id_from=id_from,
            keep_headers=None if keep_headers is None else [each.lower() for each in keep_headers],
            dedup=dedup,
            max_body_bytes=max_body_bytes,
            max_rate=max_rate,
            paused=paused,
        )
        self._transport.run(call)

    def drop(self, name: str) -> None:
        """Remove a webhook source. What it has published stays.

        Raises:
            NotFound: It does not exist.
        """
        self._transport.run(operations.drop(name))

    def list_all(self) -> list[WebhookSourceInfo]:
        """All webhook sources, by name."""
        return self._transport.run(operations.list_all())

    def info(self, name: str) -> WebhookSourceInfo:
        """A webhook source, with the last requests that it refused.

        Raises:
            NotFound: It does not exist.
        """
        found = self._transport.run(operations.info(name))
        if found is None:
            raise NotFound(f'webhook source "{name}" does not exist')
        return found
