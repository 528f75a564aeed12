"""The options of webhook sources: what each kind of sender needs besides secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from postbus.model.errors import InvalidInput
from postbus.model.webhook import WEBHOOK_KINDS, WebhookKind
from postbus.webhooks import signatures

TOLERANCE_SECONDS: Final = 300
PLACEHOLDER: Final = re.compile(r"\{(body|timestamp|id|header:[A-Za-z0-9_-]{1,100})\}")
_ALGORITHMS: Final = ("sha1", "sha256", "sha384", "sha512")
_ENCODINGS: Final = ("hex", "base64")
_HEADER: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
HANDSHAKES: Final = ("meta", "graph", "eventgrid", "cloudevents", "echo", "okta", "crc", "zoom")

_TEXT: Final = (str, "a text")
_OPTIONS_OF_ALL: Final[dict[str, tuple[type, str]]] = {"handshake": _TEXT, "verify_token": _TEXT, "client_state": _TEXT}
_OPTIONS: Final[dict[WebhookKind, dict[str, tuple[type, str]]]] = {
    "standard": {"tolerance": (int, "a number of seconds")},
    "stripe": {"tolerance": (int, "a number of seconds")},
    "slack": {"tolerance": (int, "a number of seconds")},
    "github": {},
    "shopify": {},
    "hmac": {
        "header": _TEXT,
        "algorithm": _TEXT,
        "encoding": _TEXT,
        "prefix": _TEXT,
        "template": _TEXT,
        "timestamp_header": _TEXT,
        "id_header": _TEXT,
        "tolerance": (int, "a number of seconds"),
    },
    "basic": {"username": _TEXT},
    "header": {"header": _TEXT},
    "none": {},
}


def check_options(kind: str, options: Mapping[str, Any], secrets: Sequence[str]) -> None:
    """Refuse options that a kind of source cannot have.

    Raises:
        InvalidInput: What is wrong.
    """
    if kind not in WEBHOOK_KINDS:
        raise InvalidInput(f'"{kind}" is not a kind of webhook source', f"there are: {', '.join(WEBHOOK_KINDS)}")
    known = _OPTIONS[kind] | _OPTIONS_OF_ALL
    for name, value in options.items():
        if name not in known:
            raise InvalidInput(f'kind "{kind}" has no option "{name}"', f"there are: {', '.join(known)}")
        wanted, words = known[name]
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise InvalidInput(f'option "{name}" is not {words}')
    _check_handshake(options)
    if not 1 <= options.get("tolerance", TOLERANCE_SECONDS) <= 86_400:
        raise InvalidInput('option "tolerance" is not between 1 and 86400')
    if kind in ("hmac", "header") and not _HEADER.fullmatch(options.get("header", "")):
        raise InvalidInput('option "header" is missing', "give the name of the header with the signature or token")
    if kind == "basic" and not options.get("username"):
        raise InvalidInput('option "username" is missing')
    if kind == "hmac":
        _check_hmac(options)
    if kind == "standard":
        _check_secrets(secrets)


def _check_secrets(secrets: Sequence[str]) -> None:
    for secret in secrets:
        try:
            signatures.key_of(secret)
        except ValueError:
            raise InvalidInput("a secret is not whsec_ and base64") from None


def _check_handshake(options: Mapping[str, Any]) -> None:
    if options.get("handshake", "meta") not in HANDSHAKES:
        raise InvalidInput(f'"{options["handshake"]}" is not a handshake', f"there are: {', '.join(HANDSHAKES)}")
    if options.get("handshake") == "meta" and not options.get("verify_token"):
        raise InvalidInput('option "verify_token" is missing', "choose one, and give it to the sender")


def _check_hmac(options: Mapping[str, Any]) -> None:
    if options.get("algorithm", "sha256") not in _ALGORITHMS:
        raise InvalidInput('option "algorithm" is not known', f"there are: {', '.join(_ALGORITHMS)}")
    if options.get("encoding", "hex") not in _ENCODINGS:
        raise InvalidInput('option "encoding" is not known', f"there are: {', '.join(_ENCODINGS)}")
    template = options.get("template", "{body}")
    if "{body}" not in template:
        raise InvalidInput('option "template" has no {body}', "what is signed has to hold the body")
    if "{" in PLACEHOLDER.sub("", template) or "}" in PLACEHOLDER.sub("", template):
        raise InvalidInput(
            'option "template" has an unknown part', "there are: {body}, {timestamp}, {id}, {header:NAME}"
        )
    for name in ("timestamp", "id"):
        if f"{{{name}}}" in template and not _HEADER.fullmatch(options.get(f"{name}_header", "")):
            raise InvalidInput(f'option "{name}_header" is missing', f"the template has {{{name}}}")
