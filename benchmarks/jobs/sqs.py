"""Messages sent, received and deleted over the SQS wire: by boto3, or by a bare client, beside our own HTTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import boto3
import orjson
import uvloop
from botocore.config import Config

import postbus
from benchmarks.comparison import Measurement
from benchmarks.http_load import HttpConnection, request
from benchmarks.http_server import HttpServer
from benchmarks.processes import run_together

_THREADS: Final = 8
_BODY: Final = "x" * 200
_WARM_UP: Final = 5


@dataclass(frozen=True, slots=True)
class BotoJob:
    """Eight threads, each with a client: send, receive, delete, one by one or by ten."""

    url: str
    queue: str
    batch_size: int
    rounds: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        clients = [client_of(self.url) for _ in range(_THREADS)]
        with ThreadPoolExecutor(_THREADS) as threads:

            def work(rounds: int) -> int:
                return sum(threads.map(lambda sqs: self._work(sqs, rounds), clients))

            work(_WARM_UP)
            yield lambda: work(self.rounds)

    def _work(self, sqs: Any, rounds: int) -> int:
        for _ in range(rounds):
            if self.batch_size == 1:
                sqs.send_message(QueueUrl=self.queue, MessageBody=_BODY)
                self._take(sqs, 1)
            else:
                entries = [{"Id": str(n), "MessageBody": _BODY} for n in range(self.batch_size)]
                sqs.send_message_batch(QueueUrl=self.queue, Entries=entries)
                self._take(sqs, self.batch_size)
        return rounds * self.batch_size

    def _take(self, sqs: Any, wanted: int) -> None:
        """Receive and delete as many as were sent."""
        while wanted > 0:
            found = sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=min(10, wanted), WaitTimeSeconds=1)
            messages = found.get("Messages", [])
            wanted -= len(messages)
            if len(messages) == 1:
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=messages[0]["ReceiptHandle"])
            elif messages:
                entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
                sqs.delete_message_batch(QueueUrl=self.queue, Entries=entries)


@dataclass(frozen=True, slots=True)
class WireJob:
    """Eight connections that send, receive and ack one by one, by one of the protocols of our server."""

    server: HttpServer
    queue: str
    protocol: Literal["sqs", "own"]
    rounds: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._work(_WARM_UP))
            yield lambda: runner.run(self._work(self.rounds))

    async def _work(self, rounds: int) -> int:
        connections = [await HttpConnection.open(self.server.host, self.server.port) for _ in range(_THREADS)]
        turn = self._turn_of_sqs if self.protocol == "sqs" else self._turn_of_own

        async def work(connection: HttpConnection) -> None:
            for _ in range(rounds):
                await turn(connection)

        await asyncio.gather(*map(work, connections))
        for connection in connections:
            connection.close()
        return rounds * _THREADS

    async def _turn_of_sqs(self, connection: HttpConnection) -> None:
        await connection.send(_sqs("SendMessage", {"QueueUrl": self.queue, "MessageBody": _BODY}))
        found: list[Any] = []
        while not found:
            answer = await connection.send(_sqs("ReceiveMessage", {"QueueUrl": self.queue, "WaitTimeSeconds": 1}))
            found = orjson.loads(answer).get("Messages", [])
        handle = found[0]["ReceiptHandle"]
        await connection.send(_sqs("DeleteMessage", {"QueueUrl": self.queue, "ReceiptHandle": handle}))

    async def _turn_of_own(self, connection: HttpConnection) -> None:
        stream = self.queue
        body = orjson.dumps({"messages": [{"key": None, "data": _BODY}]})
        await connection.send(request("POST", f"/api/streams/{stream}/messages", body))
        path = f"/api/streams/{stream}/consumers/{stream}"
        found: list[Any] = []
        while not found:
            answer = await connection.send(request("POST", f"{path}/receive", b'{"batch_size":1,"wait_for":1000}'))
            found = orjson.loads(answer)["data"]
        await connection.send(request("POST", f"{path}/ack", orjson.dumps({"ack_ids": [found[0]["ack_id"]]})))


def client_of(url: str) -> Any:
    """A client of boto3, with its checks of parameters and of MD5s."""
    return boto3.session.Session().client(
        "sqs",
        endpoint_url=url,
        region_name="eu-central-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 0}),
    )


def by_boto(url: str, *, batch_size: int, message_count: int, is_exact: bool) -> Measurement:
    """One round on a new queue. If the server gives each message to one receiver only, it must be empty at the end.

    Raises:
        RuntimeError: It is not.
    """
    sqs = client_of(url)
    queue = sqs.create_queue(QueueName=f"bench-{secrets.token_hex(6)}")["QueueUrl"]
    try:
        measurement = run_together([BotoJob(url, queue, batch_size, message_count // _THREADS // batch_size)])
        if is_exact and "Messages" in sqs.receive_message(QueueUrl=queue):
            raise RuntimeError(f"not all was deleted at {url}")
        return measurement
    finally:
        sqs.delete_queue(QueueUrl=queue)


def by_wire(server: HttpServer, database: str, protocol: Literal["sqs", "own"], *, message_count: int) -> Measurement:
    """One round on a new queue, made alike for both protocols."""
    name = f"bench-{secrets.token_hex(6)}"
    sqs = client_of(f"http://{server.host}:{server.port}")
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    try:
        place = queue if protocol == "sqs" else name
        measurement = run_together([WireJob(server, place, protocol, message_count // _THREADS)])
        with postbus.connect(database, upkeep=False) as bus:
            if bus.consumer(name, name).stats().backlog:
                raise RuntimeError("not all was deleted")
        return measurement
    finally:
        sqs.delete_queue(QueueUrl=queue)


def _sqs(operation: str, given: dict[str, Any]) -> bytes:
    plain = request("POST", "/", orjson.dumps(given))
    return plain.replace(b"\r\n\r\n", b"\r\nx-amz-target: AmazonSQS." + operation.encode() + b"\r\n\r\n", 1)
