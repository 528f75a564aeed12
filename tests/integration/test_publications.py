"""Beside a publication of all tables, as somebody who replicates the whole database has one."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

import postbus

pytestmark = pytest.mark.newest_server


@pytest.fixture
def published_url(fresh_url: str) -> Iterator[str]:
    with psycopg.connect(fresh_url, autocommit=True) as owner:
        owner.execute("create publication everything for all tables")
        yield fresh_url


def test_every_table_can_be_deleted_from_where_all_tables_are_published(published_url: str) -> None:
    with postbus.connect(published_url) as bus, psycopg.connect(published_url, autocommit=True) as owner:
        bus.create_stream("all", dedup_window=60, one_message_per_key=True)
        bus.create_consumer("all", "c", keep_history=60)
        rows = owner.execute(
            """
            select c.relname
            from pg_class as c
            where c.relnamespace = 'postbus_data'::regnamespace
                and c.relkind = 'r'
                and c.relpersistence = 'p'
                and c.relreplident <> 'f'
                and not exists (select from pg_index as i where i.indrelid = c.oid and i.indisprimary)
            """
        ).fetchall()

    assert rows == []


def test_consumers_with_a_history_work_and_go_where_all_tables_are_published(published_url: str) -> None:
    with postbus.connect(published_url) as bus:
        bus.create_stream("orders")
        bus.create_consumer("orders", "billing", keep_history=60)
        consumer = bus.consumer("orders", "billing")
        bus.publish("orders", data=1)
        consumer.ack(consumer.receive(1))
        assert [entry.outcome for entry in consumer.history()] == ["acked"]

        consumer.drop()

        assert bus.list_consumers("orders") == []


def test_rights_are_taken_back_where_all_tables_are_published(published_url: str) -> None:
    with postbus.connect(published_url) as bus, psycopg.connect(published_url, autocommit=True) as owner:
        bus.create_stream("orders")
        owner.execute("select postbus.grant_stream('orders', current_user, 'read')")

        owner.execute("select postbus.revoke_stream('orders', current_user, 'read')")

        (count,) = owner.execute(sql.SQL("select count(*) from postbus_data.stream_grant")).fetchone() or (None,)
    assert count == 0
