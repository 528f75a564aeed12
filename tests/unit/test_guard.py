"""Where the server may send requests to: not to its own machine and network, however that is written."""

from __future__ import annotations

import pytest

from postbus.http.guard import Guard, Refused
from postbus.model.errors import InvalidInput

# The cases of Svix's `is_allowed_test`, and more of the kinds that were broken elsewhere.
REFUSED = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.0.1"),
    *("169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1"),
    *("192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
    *(
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::7f00:1",
    ),
    *("64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2001:10::1"),
    *("2002:7f00:1::", "2002:808:808::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "5f00::1"),
)
ALLOWED = (
    *(
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
    ),
    *("169.253.255.255", "172.15.255.255", "172.32.0.1", "192.167.255.255", "192.169.0.1", "198.17.255.255"),
    *("2606:4700::1111", "2a00:1450:4001::1"),
)


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_public_is_refused_in_an_url_too(address: str) -> None:
    guard = Guard()
    with pytest.raises(Refused, match="refused"):
        guard.check_address(address)
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(Refused):
        guard.check_url(f"https://{host}/hook")


@pytest.mark.parametrize("address", ALLOWED)
def test_a_public_address_is_allowed(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    Guard().check_address(address)
    Guard().check_url(f"https://{host}/hook")


def test_the_zone_of_an_address_does_not_hide_it() -> None:
    with pytest.raises(Refused):
        Guard().check_address("fe80::1%eth0")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https:///path",
            "https://",
            "//example.com",
        ),
        *(
            "https://ada@example.com/",
            "https://ada:secret@example.com/",
            "https://example.com:22/",
            "https://example.com:0/",
        ),
        *(
            "https://example.com:99999/",
            "https://exa mple.com/",
            "https://-a.com/",
            "https://[::1/",
            "javascript:alert(1)",
            "https://bücher.example/",
        ),
    ],
)
def test_an_url_that_is_not_plainly_https_is_refused(url: str) -> None:
    with pytest.raises(Refused) as refused:
        Guard().check_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://example.com/", "https://example.com:8443/a?b=c", "https://xn--bcher-kva.example/"]
)
def test_an_url_by_https_is_allowed(url: str) -> None:
    Guard().check_url(url)


def test_what_the_operator_allows_is_allowed_also_by_http() -> None:
    guard = Guard(["10.0.0.0/8", "fd00::/8", "hooks.internal"])

    guard.check_url("http://10.1.2.3:8080/")
    guard.check_url("http://[fd00::1]/")
    guard.check_url("http://HOOKS.internal/")
    guard.check_address("10.1.2.3")
    assert guard.is_trusted("hooks.internal.")
    for url in ("http://11.0.0.1/", "https://192.168.0.1/", "http://other.internal/", "http://x.hooks.internal/"):
        with pytest.raises(Refused):
            guard.check_url(url)
    # A wrapped form is another address.
    with pytest.raises(Refused):
        guard.check_address("::ffff:10.1.2.3")


def test_http_can_be_allowed_everywhere_without_allowing_private_addresses() -> None:
    guard = Guard(allow_http=True)
    guard.check_url("http://example.com/")
    with pytest.raises(Refused):
        guard.check_url("http://127.0.0.1/")


@pytest.mark.parametrize("text", ["", "10.0.0.0/99", "http://a.b", "a b", "1.2.3", "10.0.0.1/8"])
def test_what_is_neither_a_network_nor_a_name_cannot_be_allowed(text: str) -> None:
    with pytest.raises(InvalidInput, match="neither"):
        Guard([text])
