"""Tokens are managed on the bus, over Postgres and over HTTP alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus


async def test_a_token_is_created_listed_and_revoked(bus: Any) -> None:
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    created = await bus.tokens.create(
        "billing", scopes=["consume"], streams=["orders*"], rate_limit=5.0, expires_at=expires_at
    )

    assert created.text.startswith("pb_")
    (stored,) = [token for token in await bus.tokens.list_all() if token.id == created.token.id]
    assert (stored.name, list(stored.scopes), list(stored.streams)) == ("billing", ["consume"], ["orders*"])
    assert (stored.rate_limit, stored.expires_at) == (5.0, expires_at)
    assert await bus.tokens.revoke(stored.id)
    assert not await bus.tokens.revoke(2**31 - 1)
    assert stored.id not in [token.id for token in await bus.tokens.list_all()]


async def test_a_token_that_allows_nothing_is_refused(bus: Any) -> None:
    with pytest.raises(postbus.InvalidInput):
        await bus.tokens.create("nobody", scopes=[])
