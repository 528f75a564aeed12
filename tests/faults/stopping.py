"""How a process of a fault test ends when it is not killed."""

from __future__ import annotations

import signal


class Stopping:
    """True once SIGTERM came: what is under way is finished first."""

    def __init__(self) -> None:
        self._came = False
        signal.signal(signal.SIGTERM, lambda *_: self._take_note())

    def _take_note(self) -> None:
        self._came = True

    def __bool__(self) -> bool:
        return self._came
