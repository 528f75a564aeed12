"""A server with the traffic of a shop, so that the console and `postbus observe` have something to show. Ctrl-C ends it.

Run it with `make demo`, or `python examples/shop/demo.py --port 7376`. Its database is in a folder that it removes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import partners

import postbus
from postbus import Message
from postbus.db.embedded.locks import FileLock

CUSTOMERS = ("ada", "bob", "cleo", "dan", "eve", "fay")
FAILURES = ("card declined: insufficient funds", "payment gateway timed out", "address is incomplete")


def create(bus: postbus.Bus) -> None:
    """The shop's streams, and who reads them."""
    bus.create_stream("orders", partitions=4, retain_up_to=86_400)
    bus.create_stream("payments", partitions=4, dedup_window=3600)
    bus.create_stream("clicks", partitions=8, max_messages=1_000_000)
    bus.create_stream("prices", one_message_per_key=True)
    bus.create_queue("emails", max_deliver=5, backoff=[1, 10, 60])
    bus.create_consumer("orders", "billing", max_deliver=3, backoff=[0.5, 2], keep_history=86_400)
    bus.create_consumer("orders", "shipping", filter="orders.*.paid", ack_wait=60)
    bus.create_consumer("payments", "ledger", order="partition")
    bus.create_consumer("clicks", "analytics", order="none")
    bus.create_consumer("clicks", "experiments", order="none").pause()
    bus.create_group("clicks", "warehouse")
    bus.schedules.create(
        "payments", "daily-report", cron="30 6 * * *", time_zone="Europe/Berlin", data={"kind": "report"}
    )
    bus.schedules.create("emails", "reminder", every=60, data={"to": "everybody@example.com", "subject": "Your basket"})


def publish(bus: postbus.Bus, stop: threading.Event) -> None:
    """Customers look around, and sometimes order."""
    number = 0
    while not stop.wait(random.uniform(0.02, 0.2)):
        number += 1
        who = random.choice(CUSTOMERS)
        clicks = [
            Message(key=f"click.{who}", data={"page": f"/shoes/{random.randint(1, 400)}"})
            for _ in range(random.randint(1, 40))
        ]
        bus.publish_many("clicks", clicks)
        amount = round(random.uniform(5, 200), 2)
        order = {
            "order": number,
            "customer": who,
            "amount": amount,
            "items": [{"sku": random.randint(1, 99), "quantity": 1}],
        }
        kind = random.choice(("new", "paid", "paid"))
        bus.publish(
            "orders", key=f"orders.{who}.{kind}", data=order, headers={"trace": f"{random.getrandbits(64):016x}"}
        )
        if kind == "paid":
            bus.publish("payments", key=who, data={"order": number, "amount": amount}, dedup_id=f"order-{number}")
            delay = 3600 if number % 5 == 0 else None
            letter = {"to": f"{who}@example.com", "subject": f"Order {number}"}
            bus.queue("emails").publish(letter, delay=delay, priority=9 if number % 7 == 0 else 4)
        if number % 20 == 0:
            bus.publish("prices", key=f"sku.{random.randint(1, 40)}", data={"cents": random.randint(100, 9999)})


def work(bus: postbus.Bus, stop: threading.Event) -> None:
    """Services that mostly succeed."""
    readers = {
        bus.consumer("orders", "billing"): 0.04,
        bus.consumer("orders", "shipping"): 0.01,
        bus.consumer("payments", "ledger"): 0.0,
        bus.queue("emails"): 0.02,
    }
    while not stop.wait(0.3):
        for reader, failing in readers.items():
            for delivery in reader.receive(50):
                if random.random() < failing:
                    reader.nack(delivery, reason=random.choice(FAILURES))
                elif delivery.state is None and random.random() < 0.01:
                    reader.defer(delivery, delay=20, state={"asked": "the warehouse"})
                elif random.random() > 0.01:
                    # The rest are in flight until their leases expire.
                    reader.ack(delivery)
        # Slower than clicks come in, now and then.
        if random.random() < 0.7:
            analytics = bus.consumer("clicks", "analytics")
            analytics.ack(analytics.receive(500))
        bus.group("clicks", "warehouse").receive(500)


@contextlib.contextmanager
def server(port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`postbus up`, in a folder of its own. It may push to this machine, where the partner is."""
    postbus_ = str(Path(sys.executable).with_name("postbus"))
    command = [postbus_, "up", "--port", str(port), "--no-access-log", "--push-allow", "127.0.0.0/8"]
    environment = {**os.environ, "POSTBUS_DATA_DIR": str(folder)}
    environment.pop("POSTBUS_URL", None)
    # In a session of its own, so that Ctrl-C reaches it once.
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


@contextlib.contextmanager
def folder_of_its_own() -> Iterator[Path]:
    """A folder for the embedded Postgres, until that has stopped."""
    folder = Path(tempfile.mkdtemp(prefix="postbus-demo-"))
    # Postgres runs as another user where this is root.
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        # Its supervisor holds this lock until Postgres is down.
        FileLock(folder / "supervisor.lock").acquire(shared=False, seconds=60)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7376, help="the port of the server")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end by itself after so long")
    chosen = parser.parse_args()
    stop = threading.Event()
    with (
        folder_of_its_own() as folder,
        postbus.connect(data_dir=folder) as bus,
        partners.partner() as endpoint,
        server(chosen.port, folder) as process,
    ):
        create(bus)
        partners.create(bus, bus.url, endpoint)
        threads = [threading.Thread(target=each, args=(bus, stop)) for each in (publish, work)]
        threads.append(threading.Thread(target=partners.change_products, args=(bus.url, stop)))
        threads.append(threading.Thread(target=partners.send_webhooks, args=(f"http://localhost:{chosen.port}", stop)))
        for thread in threads:
            thread.start()
        print(f"\nThe shop is open: http://localhost:{chosen.port}/   Ctrl-C closes it.\n", flush=True)
        until = time.monotonic() + chosen.seconds
        with contextlib.suppress(KeyboardInterrupt):
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
