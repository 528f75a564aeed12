"""What goes on, for the person who waits: on stderr, so that stdout holds nothing but tables."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
