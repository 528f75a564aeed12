"""Which addresses the server may send requests to on behalf of others: none of its own machine and network, unless it is told so.

The rules about addresses are those of `ssrfguard`, and stricter in two ways: addresses that wrap another one are refused as a
whole, and so is the address at which machines of Azure reach their host.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from ssrfguard import BlockedAddressError, Policy

from postbus.model.errors import InvalidInput

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IPv4 in IPv6 in all its forms (mapped, compatible, NAT64, 6to4, Teredo), and the host of a machine in Azure.
_ALSO_REFUSED: Final = tuple(
    map(
        ipaddress.ip_network,
        ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "168.63.129.16/32"),
    )
)
_FIRST_FREE_PORT: Final = 1024
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Refused(InvalidInput):
    """A request may not be sent there."""


class Guard:
    """Decides where requests may be sent.

    Args:
        allowed: Networks and names of hosts to which requests may be sent in any case, also by http.
        allow_http: Whether http is allowed everywhere, and not only https.

    Raises:
        InvalidInput: What is allowed is neither a network nor the name of a host.
    """

    def __init__(self, allowed: Iterable[str] = (), *, allow_http: bool = False) -> None:
        self._networks: list[_Network] = []
        self._hosts: set[str] = set()
        self._allow_http = allow_http
        self._policy = Policy()
        for each in allowed:
            self._allow(each)

    def _allow(self, text: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(text.strip("[]")))
        except ValueError:
            if not _HOST.fullmatch(text.lower()) or text.replace(".", "").isdigit() or "/" in text:
                hint = "give a network such as 10.0.0.0/8, an address, or a name such as hooks.internal"
                raise InvalidInput(f'"{text}" is neither a network nor the name of a host', hint) from None
            self._hosts.add(text.lower().rstrip("."))

    def is_trusted(self, host: str) -> bool:
        """Whether the name of a host is allowed, whatever its address is."""
        return host.lower().rstrip(".") in self._hosts

    def check_url(self, url: str) -> None:
        """Refuse a URL without looking up its name.

        Raises:
            Refused: Requests may not be sent there.
        """
        if not url.isascii():
            raise Refused(
                "url has characters that are not ASCII", "write the name of its host as xn--…, and encode its path"
            )
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise Refused(f"url is not valid: {error}") from None
        if parts.scheme not in _DEFAULT_PORTS or not host:
            raise Refused("url is not one of https")
        if parts.username is not None or parts.password is not None:
            raise Refused("url has a user name", "send it as a header instead")
        port = _DEFAULT_PORTS[parts.scheme] if port is None else port
        if port < _FIRST_FREE_PORT and port not in _DEFAULT_PORTS.values():
            raise Refused(f"port {port} of the url is that of another service", "use 443, 80, or one above 1023")
        address = _literal(host)
        if address is not None:
            self.check_address(address)
        elif not _HOST.fullmatch(host):
            raise Refused("url has no valid name of a host")
        if parts.scheme == "http" and not self._may_be_plain(host, address):
            hint = "use https; the server can allow http: postbus up --push-allow-http"
            raise Refused("url is http, which anybody on the way can read and change", hint)

    def _may_be_plain(self, host: str, address: _Address | None) -> bool:
        if self._allow_http or self.is_trusted(host):
            return True
        return address is not None and self._is_in_allowed_network(address)

    def check_address(self, address: str | _Address) -> None:
        """Refuse an address.

        Raises:
            Refused: Requests may not be sent there.
        """
        if isinstance(address, str):
            # The zone of a link-local address.
            address = ipaddress.ip_address(address.partition("%")[0])
        if self._is_in_allowed_network(address):
            return
        for network in _ALSO_REFUSED:
            if address in network:
                raise _refused(address, f"it is in {network}")
        try:
            self._policy.check_address(address)
        except BlockedAddressError as error:
            raise _refused(address, error.reason) from None

    def _is_in_allowed_network(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _literal(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _refused(address: _Address, why: str) -> Refused:
    hint = "if it is meant, start the server with --push-allow and the network or the name of the host"
    return Refused(f"requests to the address {address} are refused: {why}", hint)
