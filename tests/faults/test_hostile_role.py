"""What a stream promises stays true beside a role that does what it can to break it, and has rights on another stream."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import postbus
from tests.faults.hostile import OWN_STREAM, tries_of
from tests.faults.processes import SCOPES, STREAM, Processes
from tests.waiting import until


@pytest.fixture
def hostile_role(own_url: str) -> Iterator[str]:
    """A role that may create schemas, and do everything to a stream of its own."""
    name = f"hostile_{secrets.token_hex(4)}"
    with psycopg.connect(own_url, autocommit=True) as owner:
        owner.execute(sql.SQL("create role {0} login").format(sql.Identifier(name)))
        owner.execute(
            sql.SQL("grant create on database {} to {}").format(sql.Identifier(owner.info.dbname), sql.Identifier(name))
        )
        with postbus.connect(own_url) as bus:
            # The first stream of the database has the number 1, by which the role knows it.
            bus.create_stream(STREAM, partitions=4)
            bus.create_stream(OWN_STREAM)
            bus.create_consumer(OWN_STREAM, "c", max_deliver=3)
        for right in ("publish", "consume", "read"):
            owner.execute("select postbus.grant_stream(%s, %s, %s)", (OWN_STREAM, name, right))
        yield name
        owner.execute(sql.SQL("drop owned by {0} cascade").format(sql.Identifier(name)))
        owner.execute(sql.SQL("drop role {0}").format(sql.Identifier(name)))


def test_a_hostile_role_loses_doubles_and_reorders_nothing_of_another_stream(
    own_url: str, tmp_path: Path, hostile_role: str
) -> None:
    with Processes(own_url, tmp_path, seed=secrets.randbits(32)) as processes, postbus.connect(own_url) as bus:
        for consumer in SCOPES:
            bus.create_consumer(STREAM, consumer, order=consumer, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
        processes.publisher()
        for consumer in SCOPES:
            processes.worker(consumer)
            processes.worker(consumer)
        processes.wait_for_more()
        attackers = [processes.attacker(hostile_role) for _ in range(2)]
        for attacker in attackers:
            until(partial(_has_tried_much, tries_of(tmp_path, attacker)), "it has tried a thousand things", seconds=60)
        processes.wait_for_more()

        processes.check_promises()


def _has_tried_much(tries: Path) -> bool:
    return tries.exists() and tries.stat().st_size > 1000
