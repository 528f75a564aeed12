"""A process that runs a worker, and writes down what its handler is about."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import postbus

# What its sessions are called in pg_stat_activity.
SESSION_NAME = "running worker"


def run_worker(url: str, stream: str, kind: str, path: Path, handler_seconds: float, settings: dict[str, Any]) -> None:
    """Each message writes "began <number> <attempt>" and "ended <number>"; the end of all writes the counts."""
    os.environ["PGAPPNAME"] = SESSION_NAME

    def note(line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")

    def handle(delivery: postbus.Delivery) -> None:
        note(f"began {delivery.data} {delivery.attempt}")
        time.sleep(handler_seconds)
        note(f"ended {delivery.data}")

    async def handle_async(delivery: postbus.Delivery) -> None:
        note(f"began {delivery.data} {delivery.attempt}")
        await asyncio.sleep(handler_seconds)
        note(f"ended {delivery.data}")

    async def run_async() -> postbus.WorkSummary:
        async with await postbus.connect_async(url) as bus:
            return await bus.consumer(stream, "c").run(handle_async, **settings)

    if kind == "async":
        summary = asyncio.run(run_async())
    else:
        with postbus.connect(url) as bus:
            summary = bus.consumer(stream, "c").run(handle, **settings)
    note(f"acked {summary.acked_count}")
