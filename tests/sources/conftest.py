from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import postbus
from postbus.sources import streaming
from tests.sources.reading import SourceBed


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions are confirmed soon, or a slot would keep the log of a whole run."""
    monkeypatch.setattr(streaming, "PACE", streaming.Pace(confirm_delay=0.0, idle_bytes=1024 * 1024, idle_seconds=2.0))


@pytest.fixture
def bed(fresh_url: str) -> Iterator[SourceBed]:
    """A bus with a stream, in the database whose tables are its source."""
    with postbus.connect(fresh_url, pool_size=3) as bus, psycopg.connect(fresh_url, autocommit=True) as sql:
        bus.create_stream("changes", partitions=2)
        bed = SourceBed(fresh_url, bus, sql)
        yield bed
        bed.close()


@pytest.fixture
def orders(bed: SourceBed) -> Any:
    bed.sql.execute("create table orders (id bigint primary key, item text, total numeric)")
    return bed
