"""How a server is run."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DEFAULT_PORT = 7376
ConsoleMode = Literal["on", "read-only", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server.

    Attributes:
        url: The Postgres behind it.
        host: The address that it listens on.
        port: Its port; 0 takes any that is free.
        insecure: Serve everybody, without tokens, on any address.
        allowed_hosts: Names that a server without tokens goes by, besides its address and, on loopback, those of this machine.
        require_tokens: Ask for tokens on a loopback address too.
        tls_certificate: A PEM file with the certificate and what it was signed with.
        tls_key: A PEM file with its key.
        workers: How many processes serve.
        pool_size: How many connections to Postgres each of them opens at most.
        connect_timeout: How many seconds a request waits for a connection before it is answered 503.
        max_body_bytes: The largest body that is read.
        arrival_timeout: How many seconds a request may take to arrive: its head, and each part of its body.
        rest_timeout: How many seconds a connection may rest between two requests.
        request_timeout: How many seconds a request may take, besides what it waits for messages, before it is answered 503.
        coalesce: Publish what arrives at the same time in one statement.
        access_log: Write a line for each request, except for those that ask how the server is.
        log_text: Write lines for people instead of JSON.
        console: Whether there are pages for browsers, and whether they may change anything.
        sqs: Speak the protocols of Amazon SQS, at / and at the URLs of queues.
        services: Sweep and maintain.
        services_lock: Of the processes that name this file, one sweeps and maintains.
        push: Send the messages of push consumers to their endpoints.
        push_allowed: Networks and names of hosts to which requests may be sent though they are private, and by http too.
        push_allow_http: Send requests by http to any endpoint.
    """

    url: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    insecure: bool = False
    allowed_hosts: tuple[str, ...] = ()
    require_tokens: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    workers: int = 1
    pool_size: int = 10
    connect_timeout: float = 5.0
    max_body_bytes: int = 16 * 1024 * 1024
    arrival_timeout: float = 20.0
    rest_timeout: float = 75.0
    request_timeout: float = 60.0
    coalesce: bool = True
    access_log: bool = True
    log_text: bool = False
    console: ConsoleMode = "on"
    sqs: bool = True
    services: bool = True
    services_lock: Path | None = None
    push: bool = True
    push_allowed: tuple[str, ...] = ()
    push_allow_http: bool = False

    @property
    def is_open(self) -> bool:
        """Whether requests need no token."""
        return self.insecure or (is_loopback(self.host) and not self.require_tokens)

    @property
    def scheme(self) -> str:
        return "http" if self.tls_certificate is None else "https"


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
