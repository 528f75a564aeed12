"""Whatever ends a reader, the stream has each transaction once; and what can no longer be complete says so."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest

from postbus.db.replication.pgoutput import format_lsn, parse_lsn
from postbus.db.session import KeptSession
from postbus.model.errors import Conflict
from postbus.sources import streaming, target
from postbus.sources.target import Publisher
from tests.sources.reading import SourceBed
from tests.waiting import until

pytestmark = pytest.mark.newest_server


def test_a_reader_goes_on_where_the_last_one_stopped(orders: SourceBed) -> None:
    orders.create("orders")
    for number in range(5):
        orders.start()
        orders.sql.execute("insert into orders values (%s)", (2 * number,))
        orders.wait_for_messages(2 * number + 1)
        orders.stop()
        orders.sql.execute("insert into orders values (%s)", (2 * number + 1,))
    orders.start()

    assert [each["record"]["id"] for each in orders.wait_for_messages(10)] == list(range(10))


def test_a_position_that_was_not_confirmed_is_enough(orders: SourceBed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming.PACE, "confirm_delay", 1e6)
    orders.create("orders")
    orders.start()
    orders.sql.execute("insert into orders values (1)")
    orders.wait_for_messages(1)
    orders.stop()

    orders.start()
    orders.sql.execute("insert into orders values (2)")

    assert [each["record"]["id"] for each in orders.wait_for_messages(2)] == [1, 2]


def test_a_second_reader_waits_and_takes_over(orders: SourceBed) -> None:
    orders.create("orders")
    first = orders.start()
    orders.read()
    orders.sql.execute("insert into orders values (1)")
    orders.wait_for_messages(1)

    first.stop()
    orders.sql.execute("insert into orders values (2)")

    assert [each["record"]["id"] for each in orders.wait_for_messages(2, seconds=10)] == [1, 2]


def test_who_has_another_position_in_mind_publishes_nothing(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.sql.execute("insert into orders values (1)")
    orders.wait_for_messages(1)
    orders.stop()
    session = KeptSession.open(orders.url)
    settings = target.find(session, "shop")
    assert settings is not None
    position = target.position(session, settings.id, settings.epoch)
    assert position is not None
    late = Publisher(session, settings)

    late.publish(position, position + 8, None, [b"k"], [b"1"])
    with pytest.raises(Conflict, match="another reader"):
        late.publish(position, position + 8, None, [b"k"], [b"2"])
    session.close()

    assert len(orders.messages()) == 2


def test_two_readers_with_one_position_publish_once(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.stop()
    session = KeptSession.open(orders.url)
    settings = target.find(session, "shop")
    assert settings is not None
    position = target.position(session, settings.id, settings.epoch) or 0
    outcomes: list[str] = []

    def publish(number: int) -> None:
        own = KeptSession.open(orders.url)
        try:
            Publisher(own, settings).publish(position, position + 8, None, [b"k"], [b"%d" % number])
            outcomes.append("published")
        except Conflict:
            outcomes.append("refused")
        own.close()

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.close()

    assert sorted(outcomes) == ["published"] + ["refused"] * 5
    assert len(orders.messages()) == 1


def test_a_slot_that_was_advanced_stops_with_a_gap_and_goes_on_after_a_restart(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.sql.execute("insert into orders values (1)")
    orders.wait_for_messages(1)
    orders.stop()
    orders.sql.execute("insert into orders values (2)")
    orders.advance_slot()

    orders.read()

    info = orders.wait_for("gap")
    assert "restart shop" in info["remedy"]
    orders.sql.execute("insert into orders values (3)")
    time.sleep(0.5)
    assert len(orders.messages()) == 1

    orders.sql.execute("select postbus.restart_source('shop')")
    found = orders.wait_for_messages(4)
    assert sorted((each["record"]["id"], each["action"]) for each in found[1:]) == [
        (1, "read"),
        (2, "read"),
        (3, "read"),
    ]


def test_a_slot_that_was_dropped_is_lost(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.stop()
    (slot,) = orders.slot_names()
    orders.sql.execute("select pg_drop_replication_slot(%s)", (slot,))

    orders.read()

    assert "does not exist" in orders.wait_for("slot_lost")["problem"]


def test_a_slot_that_was_made_again_is_a_gap(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.stop()
    (slot,) = orders.slot_names()
    orders.sql.execute("select pg_drop_replication_slot(%s)", (slot,))
    orders.sql.execute("insert into orders values (1)")
    orders.sql.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))

    orders.read()

    orders.wait_for("gap")
    assert orders.messages() == []


def test_another_cluster_has_diverged(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.stop()
    orders.sql.execute("update postbus_data.source set system_identifier = '42'")

    orders.read()

    assert "another cluster" in orders.wait_for("diverged")["problem"]


def test_a_source_that_was_restored_has_diverged(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.stop()
    (now,) = orders.sql.execute("select pg_current_wal_lsn()::text").fetchone() or ("0/0",)
    orders.sql.execute("update postbus_data.source_position set lsn = %s", (format_lsn(parse_lsn(now) + 10**9),))

    orders.read()

    assert "restored" in orders.wait_for("diverged")["problem"]


def test_a_slot_that_another_program_reads_is_waited_for(orders: SourceBed) -> None:
    from postbus.db.replication.walsender import Walsender

    orders.create("orders")
    orders.start()
    orders.stop()
    (slot,) = orders.slot_names()
    info = orders.info()
    with Walsender(orders.url, application="somebody else") as other:
        other.start(slot, 0, info["publication"])
        orders.read()
        assert "somebody else" in orders.wait_for("waiting_for_slot")["problem"]

    orders.wait_for("streaming")


def test_idle_tables_do_not_keep_the_log(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.sql.execute("create table busy (id int primary key, filler text)")

    def confirmed() -> int:
        (found,) = orders.sql.execute(
            "select confirmed_flush_lsn::text from pg_replication_slots where database = current_database()"
        ).fetchone() or ("0/0",)
        return parse_lsn(found)

    before = confirmed()
    for number in range(3):
        orders.sql.execute(
            "insert into busy select n, repeat(md5(n::text), 30) from generate_series(%s::int, %s::int) as n",
            (number * 2000, number * 2000 + 1999),
        )

    until(lambda: confirmed() > before + 3_000_000, "the slot moves although nothing is published")
    assert orders.messages() == []
    # And what comes afterwards is not missed.
    orders.stop()
    orders.sql.execute("insert into orders values (1)")
    orders.start()
    orders.wait_for_messages(1)


def test_a_paused_source_is_not_read(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    orders.sql.execute("select postbus.pause_source('shop')")
    until(
        lambda: not orders.sql.execute("select active from pg_replication_slots").fetchall()[0][0],
        "nobody reads the slot",
    )
    orders.sql.execute("insert into orders values (1)")
    assert orders.info()["state"] == "paused"
    assert orders.messages() == []

    orders.sql.execute("select postbus.resume_source('shop')")
    orders.wait_for_messages(1)


def test_new_settings_hold_from_the_next_change_on(orders: SourceBed) -> None:
    orders.sql.execute("create table notes (id int primary key)")
    orders.create("orders")
    orders.start()

    orders.sql.execute("select postbus.alter_source('shop', tables => '{orders,notes}', format => 'sequin2024')")

    until(lambda: len(orders.info()["found_tables"]) == 2, "the new table is found")
    orders.sql.execute("insert into notes values (1)")
    (found,) = orders.wait_for_messages(1)
    assert found == {"data": {"id": 1}, "deleted": False, "changes": None, "action": "insert"}


def test_what_the_stream_refuses_is_said_and_tried_again(orders: SourceBed) -> None:
    orders.bus.alter_stream("changes", max_message_bytes=1024)
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders values (1, repeat('x', 5000))")

    info = orders.wait_for("refused")
    assert "1024" in info["problem"]
    orders.bus.alter_stream("changes", max_message_bytes=100_000)
    orders.sql.execute("select postbus.resume_source('shop')")
    orders.wait_for_messages(1)


def test_a_publish_that_takes_long_does_not_end_the_connection(orders: SourceBed) -> None:
    """The server ends a reader that it does not hear of."""
    orders.create("orders", url=f"{orders.url}&options=-c%20wal_sender_timeout%3D1500")
    orders.start()

    def reader() -> list[Any]:
        return orders.sql.execute(
            "select pid from pg_stat_replication where application_name like 'postbus source shop of %'"
        ).fetchall()

    before = reader()
    with psycopg.connect(orders.url) as other:
        other.execute("select from postbus_data.source for update")
        orders.sql.execute("insert into orders values (1)")
        time.sleep(4)
        assert orders.messages() == []
    orders.wait_for_messages(1)

    assert reader() == before
    assert len(before) == 1


def test_a_role_that_may_do_no_more_than_it_must_is_enough(orders: SourceBed) -> None:
    orders.sql.execute("drop role if exists shop_source")
    orders.sql.execute("create role shop_source login replication")
    database = orders.sql.info.dbname
    try:
        orders.sql.execute(f"grant create on database {database} to shop_source".encode())
        orders.sql.execute("create schema shop authorization shop_source")
        orders.sql.execute("create table shop.items (id int primary key); alter table shop.items owner to shop_source")
        orders.sql.execute("insert into shop.items values (1)")
        user = f"{orders.sql.info.user}@"
        orders.create("shop.items", url=orders.url.replace(user, "shop_source@", 1), backfill=True)
        orders.start()
        orders.sql.execute("insert into shop.items values (2)")
        orders.wait_for_messages(2)
        orders.stop()
        assert orders.info()["database"].startswith("shop_source@")
    finally:
        orders.close()
        orders.sql.execute("drop schema shop cascade; drop owned by shop_source; drop role shop_source")


def test_a_fault_of_ours_is_told_without_data(orders: SourceBed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("geheim")

    orders.create("orders")
    monkeypatch.setattr(streaming.Streaming, "_take", fail)
    orders.read()
    orders.wait_for("streaming")
    orders.sql.execute("insert into orders values (1)")

    assert orders.wait_for("refused")["problem"] == "an internal error: KeyError"


def test_a_restart_that_empties_first_ends_what_was_deleted_in_between(orders: SourceBed) -> None:
    orders.sql.execute("insert into orders values (1), (2)")
    orders.create("orders", backfill=True)
    orders.read()
    orders.wait_for_messages(2)
    orders.stop()
    orders.sql.execute("delete from orders where id = 1")
    orders.advance_slot()
    orders.read()
    orders.wait_for("gap")

    orders.sql.execute("select postbus.restart_source('shop', empty_first => true)")

    found = orders.wait_for_messages(4)
    assert [each["action"] for each in found[2:]] == ["truncate", "read"]
    assert found[3]["record"]["id"] == 2
    orders.stop()
    orders.start()
    orders.stay_at_messages(4)
    with pytest.raises(psycopg.DatabaseError, match="needs backfill"):
        orders.sql.execute("select postbus.restart_source('shop', false, true)")


def test_the_reader_of_another_bus_is_not_ended(orders: SourceBed) -> None:
    """A copy of the bus, restored elsewhere, has the same slot in mind."""
    from postbus.db.replication.walsender import Walsender

    orders.create("orders")
    orders.start()
    orders.stop()
    (slot,) = orders.slot_names()
    with Walsender(orders.url, application="postbus source shop of 01234567") as other:
        other.start(slot, 0, orders.info()["publication"])
        orders.read()
        problem = orders.wait_for("waiting_for_slot")["problem"]
        time.sleep(2)
        (pid,) = orders.sql.execute(
            "select active_pid from pg_replication_slots where slot_name = %s", (slot,)
        ).fetchone() or (0,)

    assert f"process {pid} " in problem
    assert "being ended" not in problem
