"""A process that loops over the batches of group "g", and writes down each batch it has done."""

from __future__ import annotations

from pathlib import Path

import postbus


def run_loop(url: str, stream: str, path: Path) -> None:
    """A line for each batch, before the loop goes on: its partition, then its numbers. Ends when nothing came for two seconds."""
    with postbus.connect(url) as bus:
        for batch in bus.group(stream, "g").batches(5, ahead=40, lease=1, wait=2):
            with path.open("a") as file:
                file.write(" ".join(str(n) for n in (batch[0].partition, *(message.data for message in batch))) + "\n")
