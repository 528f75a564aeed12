"""A shop moves to Postbus, from its files and its old table to paid invoices, and back to what retention has dropped.

    python examples/shop/story.py

1. `ingest` publishes the orders of two CSV files to the stream orders. One row does not fit, and goes aside.
2. `backfill` adds those of the shop's old table, which lies in the same Postgres.
3. `transform` makes an invoice of each order that is worth one, in the stream invoices.
4. A consumer, billing, works on the invoices.
5. `archive` takes the orders to Parquet files; then retention lets the log go of all but the last three.
6. `replay` publishes what the log has lost once more, to another stream.

All of it runs on this machine: the embedded Postgres, or the one that POSTBUS_URL names, and a local Spark. Streams, table and
files are those of this story, and are removed at its end. A pipeline that is killed goes on when it is run again, and does its
work once; billing, like every consumer, may be given a message again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg

import postbus
from postbus.pipelines import (
    ArchiveOptions,
    BackfillOptions,
    IngestOptions,
    ReplayOptions,
    TransformOptions,
    archive_stream,
    backfill_table,
    ingest_files,
    replay_stream,
    transform_streams,
    verify_archive,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES: Final = Path(__file__).parent / "orders"
COLUMNS: Final = "order INT, customer STRING, item STRING, quantity INT, cents INT"
OLD_TABLE: Final = """
create schema shop;
create table shop.orders ("order" integer primary key, customer text, item text, quantity integer, cents integer);
insert into shop.orders values
    (1001, 'ada', 'stamps', 100, 80), (1002, 'grace', 'post horn', 1, 11900), (1003, 'linus', 'envelopes', 20, 11);
"""
INVOICES: Final = """
select concat('invoices.', data.customer, '.', data.order) as key,
    to_json(named_struct('order', data.order, 'customer', data.customer, 'cents', data.quantity * data.cents)) as data
from orders
where data.quantity * data.cents >= 1000
"""
STREAMS: Final = ("orders", "orders-bad", "invoices", "orders-again")


def tell(bus: postbus.Bus, spark: SparkSession, folder: Path, say: Callable[[str], None] = print) -> None:
    """Run the story on a bus that has none of its streams yet; files go to the folder."""
    bus.create_stream("orders", max_messages=3)
    bus.create_stream("invoices")
    # Without an archive, retention could have its way before the story is over.
    archive = ArchiveOptions(stream="orders", to=str(folder / "lake"))
    archive_stream(bus.url, archive, spark=spark)

    key = "orders.{customer}.{order}"
    files = IngestOptions(stream="orders", files=str(FILES), schema=COLUMNS, key=key)
    ingested = ingest_files(bus.url, files, spark=spark)
    say(f"1. {ingested.files} files: {ingested.messages} orders published, {ingested.bad} aside in {ingested.bad_into}")
    for message in bus.scan(ingested.bad_into):
        say(f"   aside: {message.data}")

    table = BackfillOptions(stream="orders", table="shop.orders", key=key)
    backfilled = backfill_table(bus.url, table, spark=spark)
    say(f"2. the old table: {backfilled.messages} orders published")

    invoices = TransformOptions(
        stream="orders", into="invoices", sql=INVOICES, data_schema=COLUMNS, checkpoint=str(folder / "checkpoint")
    )
    transformed = transform_streams(bus.url, invoices, spark=spark)
    say(f"3. {transformed.read} orders read, {len(list(bus.scan('invoices')))} invoices published")

    billing = bus.create_consumer("invoices", "billing", order="none")
    while batch := billing.receive(max_messages=10):
        for invoice in sorted(batch, key=lambda each: each.data["order"]):
            say(f"4. billing: {invoice.data['customer']} pays {invoice.data['cents'] / 100:.2f} for {invoice.key}")
        billing.ack(batch)

    archived = archive_stream(bus.url, archive, spark=spark)
    proof = verify_archive(bus.url, "orders", spark=spark)
    bus.maintain("orders")
    left = len(list(bus.scan("orders")))
    say(f"5. {archived} orders archived, {len(proof.problems)} problems; retention has left {left} in the log")

    bus.create_stream("orders-again")
    replay = ReplayOptions(stream="orders", into="orders-again", end=str(bus.stream_info("orders").start_seq - 1))
    replayed = replay_stream(bus.url, replay, spark=spark)
    keys = sorted(str(message.key) for message in bus.scan("orders-again"))
    say(f"6. {replayed} orders that the log has lost, published once more: {', '.join(keys)}")


@contextmanager
def stage(bus: postbus.Bus) -> Iterator[None]:
    """The shop's old table; at the end it and the streams are removed."""
    present = {info.name for info in bus.overview()} & set(STREAMS)
    if present:
        raise SystemExit(f"this bus has streams that the story would use: {', '.join(sorted(present))}")
    with psycopg.connect(bus.url, autocommit=True) as connection:
        connection.execute(OLD_TABLE)
        try:
            yield
        finally:
            connection.execute("drop schema shop cascade")
            for name in {info.name for info in bus.overview()} & set(STREAMS):
                bus.drop_stream(name)


def main() -> None:
    """Tell it to whoever has started it."""
    from postbus.pipelines.runtime import spark_session

    with (
        postbus.connect() as bus,
        stage(bus),
        tempfile.TemporaryDirectory() as folder,
        spark_session.started() as spark,
    ):
        tell(bus, spark, Path(folder))


if __name__ == "__main__":
    main()
