"""A process that sends for all endpoints of a bus, until it is killed: python -m tests.push.sender_process URL."""

from __future__ import annotations

import asyncio
import sys

import postbus
from postbus.http.guard import Guard
from postbus.push.service import PushService


async def main() -> None:
    async with await postbus.connect_async(sys.argv[1], pool_size=4, upkeep=False) as bus:
        PushService(bus, Guard(["127.0.0.0/8"])).start()
        print("sending", flush=True)
        await asyncio.sleep(600)


asyncio.run(main())
