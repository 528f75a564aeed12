"""How a bus comes about."""

from __future__ import annotations

from pathlib import Path

from postbus.bus._async.bus import AsyncBus
from postbus.db import migrations
from postbus.db import url as urls
from postbus.db._async.database import AsyncDatabase, in_thread
from postbus.db.embedded import EmbeddedServer


async def connect_async(
    url: str | None = None, *, data_dir: Path | str | None = None, pool_size: int = 10, connect_timeout: float = 30
) -> AsyncBus:
    """Connect to Postbus in a Postgres.

    Args:
        url: `postgresql://…`. None takes the environment variable POSTBUS_URL and, without it, the embedded Postgres, which
            is started if it does not run.
        data_dir: Where the embedded Postgres lives. None takes POSTBUS_DATA_DIR or `~/.local/share/postbus`.
        pool_size: How many connections are opened at most.
        connect_timeout: How many seconds to wait for a connection before raising `Unavailable`.

    Raises:
        Unavailable: Postgres cannot be reached.
        MigrationDue: Postbus is not installed there, or is older or newer; the hint says what to do.
        EmbeddedError: The embedded Postgres cannot be started.
    """
    chosen = None if data_dir is not None and url is None else urls.choose(url)
    server = None
    if chosen is None:
        server = EmbeddedServer(data_dir)
        await in_thread(server.start)
        chosen = server.url
        try:
            await in_thread(migrations.migrate, chosen)
        except BaseException:
            server.stop()
            raise
    database = AsyncDatabase(chosen, pool_size=pool_size, connect_timeout=connect_timeout)
    try:
        await database.open()
    except BaseException:
        if server is not None:
            server.stop()
        raise
    bus = AsyncBus(database, server=server)
    try:
        await database.check_installed()
    except BaseException:
        await bus.close()
        raise
    return bus
