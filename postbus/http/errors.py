"""Turns error responses and broken connections into errors of Postbus."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx

from postbus.model import errors
from postbus.model.advice import TEXTS, Advice

# The server names an error by its class, in snake case.
_BY_CODE: Final = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in errors.all_errors()}
_BY_STATUS: Final[dict[int, type[errors.Error]]] = {
    400: errors.InvalidInput,
    401: errors.NotAllowed,
    403: errors.NotAllowed,
    404: errors.NotFound,
    405: errors.NotFound,
    408: errors.Unavailable,
    409: errors.Conflict,
    413: errors.TooLarge,
    422: errors.InvalidInput,
    429: errors.Unavailable,
    502: errors.ConnectionLost,
    503: errors.Unavailable,
    504: errors.ConnectionLost,
    507: errors.StreamFull,
}
_GENERAL: Final = Advice("see_reference")
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def of_answer(status: int, content: Any) -> errors.Error:
    """The error in a response. A proxy may have sent the response, and then it has no code."""
    answer = content if isinstance(content, dict) else {}
    kind = _BY_CODE.get(answer.get("code", "")) or _BY_STATUS.get(status, errors.Error)
    message = answer.get("summary") or f"the server answered {status}"
    advice = _advice_in(answer.get("advice"))
    if advice == _GENERAL and kind is not errors.InvalidInput:
        # What a request takes is no help against the state that it met.
        return kind(message)
    return kind(message, answer.get("hint")) if advice is None else kind.advised(message, advice)


def _advice_in(given: Any) -> Advice | None:
    """Advice that this version has words for; a newer server may know more."""
    if not isinstance(given, dict) or given.get("code") not in TEXTS or not isinstance(given.get("facts", {}), dict):
        return None
    return Advice(given["code"], {str(name): str(fact) for name, fact in given.get("facts", {}).items()})


def of_transport(error: httpx.HTTPError | httpx.InvalidURL, url: str) -> errors.Error:
    """The error for a request without a response. It depends on whether the request was sent."""
    what = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _UNSENT):
        if "CERTIFICATE_VERIFY_FAILED" in what:
            return errors.Unavailable(
                f"cannot connect to {url}: {what}", "SSL_CERT_FILE names the certificates to trust"
            )
        return errors.Unavailable.advised(f"cannot connect to {url}: {what}", Advice("server_unreachable"))
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol):
        return errors.ConnectionLost(
            f"the connection to {url} was lost: {what}", "the call may or may not have taken effect"
        )
    return errors.InvalidInput(f"no request can be sent to {url}: {what}")
