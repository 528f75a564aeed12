"""A process that runs a worker whose handler works in pieces, and writes down each."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import postbus

PIECES = 20


def run_pieces(url: str, stream: str, kind: str, path: Path, piece_seconds: float, settings: dict[str, Any]) -> None:
    """Each piece writes "piece <number> <piece> <attempt>", and a message that is through "through <number>"."""

    def note(line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")

    def decide(delivery: postbus.Delivery) -> postbus.Defer | None:
        done = delivery.state or 0
        note(f"piece {delivery.data} {done} {delivery.attempt}")
        if done + 1 < PIECES:
            return postbus.Defer(state=done + 1)
        note(f"through {delivery.data}")
        return None

    def handle(delivery: postbus.Delivery) -> postbus.Defer | None:
        time.sleep(piece_seconds)
        return decide(delivery)

    async def handle_async(delivery: postbus.Delivery) -> postbus.Defer | None:
        await asyncio.sleep(piece_seconds)
        return decide(delivery)

    async def run_async() -> None:
        async with await postbus.connect_async(url) as bus:
            await bus.consumer(stream, "c").run(handle_async, **settings)

    if kind == "async":
        asyncio.run(run_async())
    else:
        with postbus.connect(url) as bus:
            bus.consumer(stream, "c").run(handle, **settings)
