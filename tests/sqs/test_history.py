"""The checker of histories, through boto3, while the server is killed: what an answer said stays true."""

from __future__ import annotations

import itertools
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from botocore.exceptions import BotoCoreError, ClientError

import postbus
from postbus.model.delivery import Delivery
from postbus.server.sqs.bodies import id_of
from tests.faults.http_server import HttpServer
from tests.history import History, Recorder, Violation, by_key, check, read, remainder_of
from tests.history.events import Delivered, Lost, Published, Received, Settled, Settling
from tests.sqs.clients import client
from tests.sqs.handles import delivery_of
from tests.waiting import until

VISIBILITY = 2


class Clients:
    """Senders and receivers by boto3, in threads, which record what they are answered."""

    def __init__(self, server: HttpServer, queue: str, directory: Path, id_base: str) -> None:
        self._server = server
        self._queue = queue
        self._name = queue.rpartition("/")[2].replace(".", "_")
        self._is_fifo = queue.endswith(".fifo")
        self._directory = directory
        self._id_base = id_base
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.received = 0

    def start(self, work: Callable[[Recorder, random.Random], None], name: str) -> None:
        def run() -> None:
            with Recorder(self._directory, name) as recorder:
                chance = random.Random(name)
                while not self._stop.is_set():
                    try:
                        work(recorder, chance)
                    except (BotoCoreError, ClientError):
                        # The server was killed, and is not back yet.
                        time.sleep(0.05)

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def have_received(self, count: int) -> bool:
        return self.received >= count

    def sender(self) -> Callable[[Recorder, random.Random], None]:
        sqs = client(self._server.url)
        seqs = itertools.count(1)

        def send(recorder: Recorder, chance: random.Random) -> None:
            group = {"MessageGroupId": f"g{chance.randrange(5)}"}
            once = {"MessageDeduplicationId": secrets.token_hex(8)} if self._is_fifo else {}
            start = time.monotonic()
            sent = sqs.send_message(QueueUrl=self._queue, MessageBody="x", **group, **once)
            end = time.monotonic()
            # Its id is made from its seq. Those of sends without an answer are passed over.
            seq = next(seq for seq in seqs if id_of(self._id_base, seq) == sent["MessageId"])
            recorder.record(Published(stream=self._name, seq=seq, key=group["MessageGroupId"], start=start, end=end))

        return send

    def receiver(self) -> Callable[[Recorder, random.Random], None]:
        sqs = client(self._server.url)

        def receive(recorder: Recorder, chance: random.Random) -> None:
            batch, handles = self.receive(sqs, recorder)
            for delivery in batch:
                time.sleep(chance.uniform(0, 0.002))
                if chance.random() < 0.1:
                    self._settle(sqs, recorder, delivery, handles[delivery.ack_id], gives_back=True)
                    if self._is_fifo:
                        # The rest of its group comes again with it.
                        return
                else:
                    self._settle(sqs, recorder, delivery, handles[delivery.ack_id], gives_back=False)

        return receive

    def receive(self, sqs: Any, recorder: Recorder) -> tuple[list[Delivery], dict[str, str]]:
        call = recorder.new_call()
        start = time.monotonic()
        found = sqs.receive_message(
            QueueUrl=self._queue,
            MaxNumberOfMessages=10,
            VisibilityTimeout=VISIBILITY,
            WaitTimeSeconds=1,
            AttributeNames=["ApproximateReceiveCount", "MessageGroupId"],
        )
        end = time.monotonic()
        messages = found.get("Messages", [])
        batch = [delivery_of(each) for each in messages]
        self.received += len(batch)
        if batch:
            recorder.record(
                Received(
                    call=call,
                    worker=recorder.name,
                    stream=self._name,
                    consumer=self._name,
                    ack_wait=VISIBILITY,
                    start=start,
                    end=end,
                    deliveries=tuple(
                        Delivered(ack_id=each.ack_id, seq=each.seq, key=each.key, partition=0, attempt=each.attempt)
                        for each in batch
                    ),
                )
            )
        return batch, {each.ack_id: message["ReceiptHandle"] for each, message in zip(batch, messages, strict=True)}

    def _settle(self, sqs: Any, recorder: Recorder, delivery: Delivery, handle: str, *, gives_back: bool) -> None:
        call = recorder.new_call()
        start = time.monotonic()
        recorder.record(
            Settling(
                call=call,
                worker=recorder.name,
                stream=self._name,
                consumer=self._name,
                verb="nack" if gives_back else "ack",
                ack_ids=(delivery.ack_id,),
                ack_wait=None,
                start=start,
            )
        )
        try:
            if gives_back:
                sqs.change_message_visibility(QueueUrl=self._queue, ReceiptHandle=handle, VisibilityTimeout=0)
            else:
                sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=handle)
        except ClientError:
            recorder.record(Settled(call=call, count=0, end=time.monotonic()))
            return
        except BotoCoreError:
            recorder.record(Lost(call=call, end=time.monotonic()))
            raise
        end = time.monotonic()
        received_at = delivery.published_at.timestamp()
        if time.time() < received_at + VISIBILITY - 0.1:
            # Within the visibility timeout, the answer is a promise.
            recorder.record(Settled(call=call, count=1, end=end))
        else:
            recorder.record(Lost(call=call, end=end))

    def violations(self, bus: postbus.Bus) -> Iterator[Violation]:
        history = History.of(read(self._directory), self._name, self._name, by_key=self._is_fifo)
        assert history.published, "something was sent"
        remainder = remainder_of(bus, self._name, self._name)
        assert not remainder.left, "all was deleted"
        yield from check(history, remainder, scope=by_key if self._is_fifo else None)


@pytest.mark.parametrize("ending", ["", ".fifo"])
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_what_an_answer_said_stays_true_when_the_server_is_killed(
    fresh_url: str, tmp_path: Path, ending: str, kills: int
) -> None:
    with HttpServer(fresh_url) as server, postbus.connect(fresh_url) as bus:
        attributes = {"FifoQueue": "true", "MessageRetentionPeriod": "3600"} if ending else {}
        queue = client(server.url).create_queue(QueueName=f"history{ending}", Attributes=attributes)["QueueUrl"]
        name = f"history{ending}".replace(".", "_")
        # The checker wants to see what was sent.
        bus.alter_stream(name, until_acked=False)
        clients = Clients(server, queue, tmp_path, _id_base(fresh_url))
        clients.start(clients.sender(), "sender")
        for number in range(3):
            clients.start(clients.receiver(), f"receiver-{number}")
        try:
            for _ in range(kills):
                wanted = clients.received + 60
                until(partial(clients.have_received, wanted), "messages are received", seconds=60)
                server.kill()
                server.start()
        finally:
            clients.stop()
        with Recorder(tmp_path, "drain") as recorder:
            drain(clients, server, recorder, bus, name)
        found = list(clients.violations(bus))

    assert not found, found[:10]


def _id_base(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("select q.id_base::text from postbus_data.sqs_queue as q").fetchone()
    assert row is not None
    return str(row[0])


def drain(clients: Clients, server: HttpServer, recorder: Recorder, bus: postbus.Bus, name: str) -> None:
    """Receive and delete what is left."""
    sqs = client(server.url)

    def is_empty() -> bool:
        batch, handles = clients.receive(sqs, recorder)
        for delivery in batch:
            clients._settle(sqs, recorder, delivery, handles[delivery.ack_id], gives_back=False)
        return not batch and bus.consumer(name, name).stats().backlog == 0

    until(is_empty, "nothing is left", seconds=60)
