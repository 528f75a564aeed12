"""With every policy in use, Postgres crashes or a standby takes over, and all goes on as if nothing had been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.db import migrations
from tests import servers
from tests.clusters import Cluster
from tests.faults.everything import Everything
from tests.waiting import until

ENDINGS = ("killed", "killed after a checkpoint", "stopped at once")


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.data_directory() as folder:
        yield folder


@pytest.fixture
def primary(folder: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(folder / "a", getattr(request, "param", "pg18")) as cluster:
        cluster.create()
        migrations.migrate(cluster.url)
        yield cluster


@pytest.mark.parametrize("ending", ENDINGS)
def test_after_a_crash_every_policy_continues_and_nothing_is_lost_or_duplicated(primary: Cluster, ending: str) -> None:
    everything = Everything(primary.url)
    everything.create()
    for _ in range(3):
        everything.round()
        everything.round()
        if ending == "killed after a checkpoint":
            primary.row("checkpoint")
        if ending == "stopped at once":
            primary.stop("immediate")
        else:
            primary.kill()
        primary.start()
    everything.round()

    everything.check()
    everything.close()


@pytest.mark.parametrize("primary", [name for name in servers.names() if name in ("pg18", "pg15")], indirect=True)
def test_a_promoted_standby_continues_with_every_policy_and_nothing_is_lost_or_duplicated(
    primary: Cluster, folder: Path
) -> None:
    everything = Everything(primary.url)
    with Cluster(folder / "b", primary.server) as standby, Cluster(folder / "c", primary.server) as second:
        for old, new in ((primary, standby), (standby, second)):
            new.copy_of(old, "--write-recovery-conf").start()
            if old is primary:
                everything.create()
            everything.round()
            everything.round()
            new.has_all_of(old)
            old.kill()
            new.promote()
            everything.move_to(new.url)
            everything.round()

        everything.check()
        everything.close()


def test_a_crash_leaves_every_register_as_it_was(primary: Cluster) -> None:
    with postbus.connect(primary.url) as bus:
        bus.create_stream("orders", dedup_window=1)
        bus.publish("orders", data=1, dedup_id="a")
        until(lambda: bus.maintain("orders") == 0 and table_count(primary) == 2, "ids go to the second table")
        before = registers(primary)
    primary.kill()
    primary.start()

    assert registers(primary) == before == (2, (1 << 35) + 8)


@pytest.mark.parametrize("when_full", ["evict", "refuse"])
def test_a_crash_takes_no_room_from_a_stream_that_keeps_few_messages(primary: Cluster, when_full: str) -> None:
    with postbus.connect(primary.url) as bus:
        bus.create_stream("orders", partitions=2, max_messages=5, when_full=when_full)  # type: ignore[arg-type]
        for number in range(5):
            bus.publish("orders", data=number)
    primary.kill()
    primary.start()
    with postbus.connect(primary.url) as bus:
        assert (bus.stream_info("orders").last_seq or 0) > 10
        bus.maintain("orders")
        bus.publish("orders", data=5)
        bus.maintain("orders")

        assert [message.data for message in bus.scan("orders")] == list(range(0 if when_full == "refuse" else 1, 6))
        assert bus.stream_info("orders").is_full == (when_full == "refuse")


def test_a_crash_in_the_middle_of_maintenance_forgets_no_id(primary: Cluster) -> None:
    with (
        postbus.connect(primary.url) as bus,
        closing(psycopg.connect(primary.url)) as maintenance,
        psycopg.connect(primary.url, autocommit=True) as publisher,
    ):
        bus.create_stream("orders", dedup_window=60)
        bus.publish("orders", data=1, dedup_id="old")
        publisher.execute("update postbus_data.dedup set begun_at = begun_at - interval '1 hour'")
        bus.maintain("orders")
        # The register moves at once, and what is noted about it only when this commits.
        maintenance.execute("select postbus.maintain('orders')")
        assert registers(primary)[0] == 2
        publisher.execute("select postbus.publish('orders', data => '2', dedup_id => 'new')")
        primary.kill()
    primary.start()

    with postbus.connect(primary.url) as bus:
        for _ in range(6):
            assert bus.publish("orders", data=3, dedup_id="old").is_duplicate
            assert bus.publish("orders", data=3, dedup_id="new").is_duplicate
            bus.maintain("orders")


def test_messages_of_a_prepared_transaction_are_not_skipped_after_a_crash(primary: Cluster) -> None:
    primary.stop()
    primary.set(max_prepared_transactions="5")
    primary.start()
    with postbus.connect(primary.url) as bus, psycopg.connect(primary.url, autocommit=True) as session:
        bus.create_stream("orders", partitions=1)
        bus.create_consumer("orders", "billing")
        session.execute("begin")
        session.execute("select postbus.publish('orders', data => '1')")
        session.execute("prepare transaction 'slow'")
        bus.publish("orders", data=2)
    primary.kill()
    primary.start()

    with postbus.connect(primary.url) as bus:
        billing = bus.consumer("orders", "billing")
        bus.publish("orders", data=3)
        assert list(billing.receive(10)) == []
        primary.row("commit prepared 'slow'")
        assert [delivery.data for delivery in billing.receive(10)] == [1, 2, 3]


def table_count(cluster: Cluster) -> object:
    return cluster.row("select count(*) from postbus_data.dedup")[0]


def registers(cluster: Cluster) -> tuple[object, ...]:
    return cluster.row(
        "select pg_sequence_last_value('postbus_data.dedup_1'), pg_sequence_last_value('postbus_data.layout_1')"
    )
