"""Who holds which advisory lock, and how it is forbidden to those who have no business with them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "use-roles.md"


@pytest.fixture
def roles(fresh_url: str) -> Iterator[tuple[str, str]]:
    """One that may publish to "orders" and receive from it, and one that may do nothing."""
    shop, stranger = (f"{name}_{secrets.token_hex(4)}" for name in ("shop", "stranger"))
    with psycopg.connect(fresh_url, autocommit=True) as owner, postbus.connect(fresh_url) as bus:
        bus.create_stream("orders", partitions=1)
        bus.create_consumer("orders", "billing")
        for role in (shop, stranger):
            owner.execute(f"create role {role} login".encode())
        owner.execute("select postbus.grant_stream('orders', %s, 'publish')", (shop,))
        owner.execute("select postbus.grant_stream('orders', %s, 'consume')", (shop,))
        yield shop, stranger
        for role in (shop, stranger):
            owner.execute(f"drop owned by {role}".encode())
            owner.execute(f"drop role {role}".encode())


def held(owner: psycopg.Connection[Any], stream: str | None = "orders") -> list[tuple[Any, ...]]:
    statement = "select purpose, partition, mode, warning, pid, user_name from postbus.lock_holders(%s)"
    return owner.execute(statement, (stream,)).fetchall()


def test_open_publishers_and_receivers_hold_their_locks_and_raise_no_suspicion(
    fresh_url: str, roles: tuple[str, str]
) -> None:
    shop, _ = roles
    with psycopg.connect(fresh_url, autocommit=True) as owner, psycopg.connect(fresh_url, user=shop) as worker:
        worker.execute("select postbus.publish('orders', 'k', '1')")
        pid = worker.info.backend_pid
        assert held(owner) == [("publish", None, "shared", None, pid, shop)]
        assert held(owner, None) == held(owner)
        worker.commit()
        worker.execute("select postbus.receive('orders', 'billing')")
        assert ("claim", 0, "exclusive", None, pid, shop) in held(owner)
        assert {warning for _, _, _, warning, _, _ in held(owner)} == {None}
        worker.commit()
        assert held(owner) == []


def test_a_foreign_lock_is_recognized_by_its_role(fresh_url: str, roles: tuple[str, str]) -> None:
    _, stranger = roles
    with psycopg.connect(fresh_url, autocommit=True) as owner, psycopg.connect(fresh_url, user=stranger) as other:
        # It needs no right to learn the key: whoever publishes shows it.
        with psycopg.connect(fresh_url) as publisher:
            publisher.execute("select postbus.publish('orders', 'k', '1')")
            keys = "select classid::bigint::integer, objid::bigint::integer from pg_locks where locktype = 'advisory'"
            ((kind, key),) = other.execute(keys).fetchall()
        other.execute("select pg_advisory_lock_shared(%s::integer, %s::integer)", (kind, key))
        (found,) = held(owner)
        assert found[:4] == ("publish", None, "shared", "its role has no right to use Postbus")
        assert found[5] == stranger


def test_by_the_statements_of_the_guide_only_the_owner_takes_advisory_locks_and_its_functions_work_for_others(
    fresh_url: str, roles: tuple[str, str]
) -> None:
    shop, stranger = roles
    (statements,) = re.findall(r"```sql\n(do \$\$.*?)```", GUIDE.read_text(), re.DOTALL)
    with psycopg.connect(fresh_url, autocommit=True) as owner:
        owner.execute(statements.replace("to postbus_owner", f'to "{owner.info.user}"').encode())
        functions = (
            "select count(*), count(*) filter (where has_function_privilege(%s, oid, 'execute')) from pg_proc where "
        )
        where = "proname ~ 'advisory' and proname !~ 'unlock'"
        for role in (shop, stranger):
            assert owner.execute(f"{functions}{where}".encode(), (role,)).fetchall() == [(16, 0)]
    for role in (shop, stranger):
        with (
            psycopg.connect(fresh_url, user=role, autocommit=True) as other,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            other.execute("select pg_try_advisory_lock_shared(1, 2)")
    with psycopg.connect(fresh_url, user=shop, autocommit=True) as worker:
        worker.execute("select postbus.publish('orders', 'k', '1')")
        assert len(worker.execute("select * from postbus.receive('orders', 'billing')").fetchall()) == 1
