"""Whatever is sent to a webhook source, there is no internal error."""

from __future__ import annotations

import contextlib
import json
import secrets
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.senders import BODY, SENDERS, Headers, Source, now
from tests.server.serving import serving


@pytest.fixture(scope="module")
def fuzzed(url: str) -> Any:
    with serving(url) as api:
        stream = f"fuzz-{secrets.token_hex(6)}"
        api.data("POST", "/api/streams", {"name": stream})
        sources = []
        for kind, _, more, _ in SENDERS.values():
            sources.append(Source(api, stream, kind, dedup=False, **more))
        sources.append(Source(api, stream, "none", dedup=False, options={"handshake": "zoom"}))
        yield sources


HEADER_NAMES = sorted(
    {name.lower() for _, sign, _, _ in SENDERS.values() for name in sign(BODY)}
    | {"content-encoding", "ce-type", "ce-id", "webhook-request-origin", "aeg-event-type"}
)
ODD = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60),
    st.sampled_from(
        ["gzip", "deflate", "v1,", "t=1,v1=", "sha256=", "Basic ", "Basic ====", str(now()), "1e400", "-1", "٣"]
    ),
).map(lambda text: text.strip().encode("utf-8").decode("latin-1"))


QUERIES = [
    "",
    "?validationToken=%00",
    "?challenge=%ff%fe",
    "?hub.verify_token=%C3%A9&hub.challenge=1",
    "?" + "a&" * 200,
]


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    place=st.integers(0, 9),
    body=st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=10,
        ).map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
        st.sampled_from(
            [b'{"a": "\\u0000"}', b'{"a": "\\ud800"}', b'{"type": {}, "id": []}', b"\x1f\x8b\x08", b"[1e999]"]
        ),
    ),
    headers=st.dictionaries(st.sampled_from(HEADER_NAMES), ODD, max_size=5),
    is_signed=st.booleans(),
    method=st.sampled_from(["POST", "POST", "POST", "GET", "OPTIONS"]),
    query=st.sampled_from(QUERIES),
)
def test_whatever_is_sent_there_is_no_internal_error(
    fuzzed: list[Source], place: int, body: bytes, headers: Headers, is_signed: bool, method: str, query: str
) -> None:
    source = fuzzed[place]
    if is_signed and place < len(SENDERS):
        _, sign, _, _ = list(SENDERS.values())[place]
        # The senders' libraries sign text only.
        with contextlib.suppress(ValueError):
            headers = {**headers, **sign(body)}
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    answer = source.api.client.request(
        method, f"{source.api.url}/api/webhook/{source.name}{query}", content=body, headers=raw
    )
    assert answer.status_code < 500, (answer.text, body, headers)
