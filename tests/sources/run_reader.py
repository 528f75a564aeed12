"""Reads the sources of a bus in a process of its own: python -m tests.sources.run_reader URL CONFIRM_DELAY."""

from __future__ import annotations

import logging
import signal
import sys

from postbus.sources import streaming
from postbus.sources.runner import SourceRunner


def main() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    streaming.PACE.confirm_delay = float(sys.argv[2])
    runner = SourceRunner(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    runner.run()


if __name__ == "__main__":
    main()
