"""What to do about an error, said in the language of whoever sees it: as Python, as a command or as a request.

SQL functions raise errors with a hint in SQL and, in the field for the name of a constraint, one of the codes below.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Surface = Literal["python", "command line", "http"]

# None says nothing: there, the general advice of the surface holds.
TEXTS: Final[Mapping[str, Mapping[Surface, str | None]]] = {
    "unknown_stream": {
        "python": "create it with: bus.create_stream({stream})",
        "command line": "create it with: postbus stream add {stream}",
        "http": 'create it with: POST /api/streams {{"name": {stream}}}',
    },
    "unknown_consumer": {
        "python": "create it with: bus.create_consumer({stream}, {consumer})",
        "command line": "create it with: postbus consumer add {stream} {consumer}",
        "http": 'create it with: POST /api/streams/{{stream}}/consumers {{"name": {consumer}}}',
    },
    "unknown_group": {
        "python": "create it with: bus.create_group({stream}, {consumer})",
        "command line": "create it with: postbus group add {stream} {consumer}",
        "http": 'create it with: POST /api/streams/{{stream}}/groups {{"name": {consumer}}}',
    },
    "already_exists": {
        "python": "to take it as it is: exist_ok=True",
        "command line": "to take it as it is: --exist-ok",
        "http": 'to take it as it is: "exist_ok": true',
    },
    "which_position": {
        "python": 'give exactly one of: "earliest" or "latest", from_seq=…, from_time=…',
        "command line": "give one of: earliest, latest, a seq, a time, or 10m for ten minutes ago",
        "http": 'give exactly one of: "start": "earliest" or "latest", "from_seq", "from_time"',
    },
    "which_messages": {
        "python": "give exactly one of: before_seq=…, before_time=…, everything=True",
        "command line": "give --before, or leave it out to remove all messages",
        "http": 'give exactly one of: "before_seq", "before_time", "everything": true',
    },
    "no_dedup_window": {
        "python": "set one: bus.alter_stream(…, dedup_window=300); or publish without ids",
        "command line": "set one: postbus stream edit … --dedup-window 5m; or publish without ids",
        "http": 'set one: PATCH /api/streams/{{stream}} {{"dedup_window_ms": 300000}}; or publish without ids',
    },
    "no_state": {
        "python": "such a stream is created with one_message_per_key=True; read any stream with bus.read({stream})",
        "command line": "such a stream is created with --one-message-per-key; read any with: postbus stream read {stream}",
        "http": 'such a stream is created with "one_message_per_key": true; read any with: GET /api/streams/{{stream}}/messages',
    },
    "postgres_unreachable": {
        "python": 'check that Postgres runs there, and the URL: connect("postgresql://…"), or POSTBUS_URL',
        "command line": "check that it runs and that the URL is right: postbus context info",
        "http": "the server cannot reach its Postgres; try again in a moment, and see /health",
    },
    "server_unreachable": {
        "python": 'check that the server runs there, and the URL: connect("http://…"), or POSTBUS_URL',
        "command line": "check that it runs (postbus up), and that the URL is right: postbus context info",
        "http": None,
    },
    "token_needed": {
        "python": "give a valid one: connect(…, token=…), or POSTBUS_TOKEN; create one with: postbus token create NAME",
        "command line": (
            "give a valid one: POSTBUS_TOKEN, or postbus context create NAME --url … --token env:NAME; "
            "create one with: postbus token create NAME"
        ),
        "http": "send it as a header: Authorization: Bearer <token>; create one with: postbus token create",
    },
    "scope_needed": {
        "python": "use a token that does: connect(…, token=…); create one with: postbus token create NAME --scope {scope}",
        "command line": "use a token that does; whoever runs the server creates one: postbus token create NAME --scope {scope}",
        "http": "use a token that does; whoever runs the server creates one: postbus token create NAME --scope {scope}",
    },
    # The server's general advice, which only helps those who write requests.
    "see_reference": {
        "python": None,
        "command line": "see what the command takes: add --help",
        "http": "see /api/openapi.json",
    },
}
_WRITTEN: Final[Mapping[Surface, Callable[[str], str]]] = {
    "python": lambda fact: json.dumps(fact, ensure_ascii=False),
    "command line": shlex.quote,
    "http": lambda fact: json.dumps(fact, ensure_ascii=False),
}


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about an error.

    Attributes:
        code: Which advice.
        facts: What it names, such as the stream.
    """

    code: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def said(self, surface: Surface) -> str | None:
        """The advice as a hint; None if there is none for this surface, or if this version does not know the code."""
        text = TEXTS.get(self.code, {}).get(surface)
        if text is None:
            return None
        facts = {name: _WRITTEN[surface](fact) for name, fact in self.facts.items()}
        try:
            return text.format(**facts)
        except KeyError:
            return None
