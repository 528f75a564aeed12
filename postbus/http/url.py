"""Which URLs lead to a server, and which tokens can be sent there."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from postbus.model.errors import InvalidInput

SCHEMES: Final = ("http://", "https://")
_is_token: Final = re.compile(r"[!-~]+").fullmatch


def is_http(url: str) -> bool:
    return url.lower().startswith(SCHEMES)


def checked(url: str) -> str:
    """The URL of a server, without the slash at its end.

    Raises:
        InvalidInput: It is not valid, or it contains a password, which would be visible wherever the URL is.
    """
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or not is_http(url):
        raise InvalidInput("this is not the URL of a server", "it must look like http://localhost:7376")
    if parts.username is not None:
        raise InvalidInput("the URL of a server takes no user and password", "give a token: connect(url, token=…)")
    if parts.query or parts.fragment:
        raise InvalidInput(f'the URL of a server has no query: "{url}"', "it must look like http://localhost:7376")
    return url.rstrip("/")


def checked_token(token: str) -> str:
    """A token as it can be sent. What is wrong with it is said without showing it.

    Raises:
        InvalidInput: It is none.
    """
    if not _is_token(token.strip()):
        raise InvalidInput("the token has characters that no token has", "give it as it was shown when it was created")
    return token.strip()
