"""What keeps a server in production: metrics, workers, the command."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

import postbus
from postbus.pipelines.runtime.run import running
from postbus.server import metrics
from tests.server.conftest import Stream
from tests.server.serving import Api, serving
from tests.waiting import until

OTHERS = """
select count(distinct pid) > 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
OPENSSL = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
COMMAND = str(Path(sys.executable).with_name("postbus"))


def test_the_official_parsers_accept_the_metrics_and_find_streams_and_consumers(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        orders = Stream(api, "orders")
        orders.consumer("billing")
        orders.send(("k", 1), ("k.2", 2))
        orders.receive()
        text = api.get("/metrics").text
        open_text = api.get("/metrics", headers={"accept": "application/openmetrics-text"}).text

    assert {family.name for family in parse_openmetrics(open_text)} >= {"postbus_http_requests", "postbus_ready"}  # type: ignore[no-untyped-call]
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }
    consumer = (("consumer", "billing"), ("stream", "orders"))
    assert samples[("postbus_stream_last_seq", ("stream", "orders"))] == 2
    assert samples[("postbus_consumer_backlog", *consumer)] == 2
    assert samples[("postbus_consumer_in_flight_messages", *consumer)] == 1
    assert samples[("postbus_stream_messages", ("stream", "orders"))] == 2
    assert samples[("postbus_messages_published_total", ("stream", "orders"))] == 2
    assert samples[("postbus_messages_received_total", *consumer)] == 1
    route = "/api/streams/{stream}/messages"
    labels = (("method", "POST"), ("route", route), ("status", "200"))
    assert samples[("postbus_http_requests_total", *labels)] == 1


def test_acks_failures_and_terminations_by_requests_are_counted(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        orders = Stream(api, "orders")
        orders.consumer("billing", order="none")
        orders.send(*((f"k.{number}", number) for number in range(6)))
        ids = [each["ack_id"] for each in orders.receive(batch_size=5)]
        assert len(ids) == 5
        api.post(f"{orders.billing}/ack", {"ack_ids": [*ids[:2], ids[0]]})
        api.post(f"{orders.billing}/nack", {"ack_ids": ids[2:3], "delay_ms": 60000})
        api.post(f"{orders.billing}/terminate", {"ack_ids": ids[3:4]})
        api.post(f"{orders.billing}/receive", {"ack_ids": ids[4:], "auto_ack": True})
        text = api.get("/metrics").text

    samples = {
        sample.name: sample.value for family in parse(text) for sample in family.samples if "consumer" in sample.labels
    }
    assert samples["postbus_messages_acked_total"] == 4
    assert samples["postbus_messages_failed_total"] == 1
    assert samples["postbus_messages_terminated_total"] == 1
    assert samples["postbus_consumer_dead_letters"] == 1
    assert samples["postbus_consumer_backlog"] == 1


def test_expired_leases_are_counted_whoever_had_received(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders", partitions=1)
        for order in ("key", "none"):
            consumer = bus.create_consumer("orders", order, order=order, backoff=[60])
        for number in range(5):
            bus.publish("orders", key=str(number), data=number)
        for order in ("key", "none"):
            consumer = bus.consumer("orders", order)
            batch = consumer.receive(4, ack_wait=0.05)
            consumer.ack(batch[0])
            time.sleep(0.1)
            until(lambda: bus.sweep("orders") >= 0 and consumer.stats().waiting == 3, "they are swept")  # noqa: B023
            bus.sweep("orders")
    with serving(fresh_url) as api:
        text = api.get("/metrics").text
    found = [
        sample
        for family in parse(text)
        for sample in family.samples
        if sample.name == "postbus_consumer_timed_out_total"
    ]
    assert sorted((sample.labels["consumer"], sample.value) for sample in found) == [("key", 3), ("none", 3)]


def test_pipelines_are_among_the_metrics(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        with running(fresh_url, "archive orders", "archive", "orders", _NoOptions()) as run:
            run.note(7, 10)
            text = api.get("/metrics").text

    found = {
        sample.name: sample.value for family in parse(text) for sample in family.samples if "pipeline" in sample.name
    }
    assert found.pop("postbus_pipeline_messages_per_second") > 0
    assert found == {
        "postbus_pipeline_running": 1,
        "postbus_pipeline_failed": 0,
        "postbus_pipeline_messages": 7,
        "postbus_pipeline_lag_messages": 0,
        "postbus_pipeline_aside": 0,
        "postbus_pipeline_late": 0,
    }


@dataclass(frozen=True)
class _NoOptions:
    """A pipeline without any."""


def test_a_scrape_does_not_wait_for_thousands_of_consumers_to_be_looked_at(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    monkeypatch.setattr(metrics, "_PATIENCE", 0.1)
    monkeypatch.setattr(metrics, "_SECONDS", 0.0)
    with serving(fresh_url) as api:
        api.data("POST", "/api/streams", {"name": "orders"})
        assert 'postbus_stream_segments{stream="orders"}' in api.get("/metrics").text
        real = metrics._look

        async def slow(bus: postbus.AsyncBus) -> Any:
            looks.append(time.monotonic())
            await asyncio.sleep(1.5)
            return await real(bus)

        monkeypatch.setattr(metrics, "_look", slow)
        api.data("POST", "/api/streams", {"name": "invoices"})
        until(lambda: bool(api.get("/metrics") and looks), "somebody looks again")
        started = time.monotonic()
        with ThreadPoolExecutor(4) as scrapers:
            pages = [each.text for each in scrapers.map(api.get, ["/metrics"] * 4)]
        assert time.monotonic() - started < 1.2
        assert all('{stream="orders"}' in page and '{stream="invoices"}' not in page for page in pages)
        assert len(looks) == 1
        until(lambda: '{stream="invoices"}' in api.get("/metrics").text, "the look is over")
        ages = [
            line for line in api.get("/metrics").text.splitlines() if line.startswith("postbus_figures_age_seconds")
        ]
        assert float(ages[0].split()[1]) >= 1.5


def test_the_metrics_of_streams_are_looked_at_once_however_many_ask(api: Api) -> None:
    metrics = api.server.state.metrics
    api.get("/metrics")
    first = metrics._gauges
    api.get("/metrics")
    assert metrics._gauges is first


@contextmanager
def up(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`postbus up` under the usual limits, and the address that it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    with subprocess.Popen(
        [COMMAND, "up", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean,
        preexec_fn=_limit_files,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def answers(address: str) -> int | None:
    """The status of an answer, or None when nobody answers."""
    try:
        return httpx.get(address, verify=False).status_code
    except httpx.TransportError:
        return None


def healthy(address: str) -> bool:
    return answers(f"{address}/health") == 200


def test_up_prints_three_commands_that_work_and_logs_requests_as_json(fresh_url: str) -> None:
    with up("--url", fresh_url) as (process, address):
        until(lambda: healthy(address), "it serves")
        soft, _ = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert soft > 1000, "it takes the files that it may have"
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        assert process.stderr is not None
        said = ""
        while said.count("curl") < 3 or not said.endswith("/messages\n"):
            said += process.stderr.readline()
        commands = re.findall(r"^  curl .*?(?<!\\)$", said, re.M | re.S)
        assert len(commands) == 3
        said_back = [
            json.loads(subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout)
            for command in commands
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        rest = process.stderr.read()
    assert said_back[1]["data"]["published"] == 1
    assert said_back[2]["data"][0]["data"] == {"quantity": 4}
    assert "Every program on this machine" in said
    assert rest.endswith("stopped\n")
    logged = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert ("POST", "/api/streams", 200) in [(each["method"], each["path"], each["status"]) for each in logged]


def test_several_processes_serve_one_port_share_their_counters_and_stop_together(fresh_url: str) -> None:
    with up("--url", fresh_url, "--workers", "2", "--no-access-log") as (process, address):
        until(lambda: healthy(address), "it serves")
        with psycopg.connect(fresh_url, autocommit=True) as connection:
            until(lambda: connection.execute(OTHERS).fetchone() == (True,), "both are connected")
        for _ in range(20):
            assert httpx.get(f"{address}/api/streams").status_code == 200
        counted = [
            sample.value
            for family in parse(httpx.get(f"{address}/metrics").text)
            for sample in family.samples
            if sample.name == "postbus_http_requests_total" and sample.labels["route"] == "/api/streams"
        ]
        assert counted == [20]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not healthy(address)


def test_up_says_that_a_port_is_taken(url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [COMMAND, "up", "--url", url, "--port", port], capture_output=True, text=True, check=False, timeout=30
        )
    assert done.returncode == 4
    assert done.stderr.startswith(f"error: port {port} of 127.0.0.1 cannot be used")
    assert "hint:  choose another with --port" in done.stderr


def test_up_refuses_a_public_address_without_tokens_and_serves_it_with_one(fresh_url: str) -> None:
    arguments = [COMMAND, "up", "--url", fresh_url, "--host", "0.0.0.0", "--port", "0"]
    refused = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=30)
    assert refused.returncode == 2
    assert "there are no tokens" in refused.stderr
    assert "--insecure" in refused.stderr

    created = subprocess.run(
        [COMMAND, "token", "create", "first", "--url", fresh_url], capture_output=True, text=True, check=True
    )
    token = created.stdout.strip()
    with up("--url", fresh_url, "--host", "0.0.0.0") as (_, address):
        until(lambda: healthy(address), "it serves")
        assert httpx.get(f"{address}/api/streams").status_code == 401
        assert httpx.get(f"{address}/api/streams", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_up_serves_tls(url: str, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        [*OPENSSL, "-keyout", str(key), "-out", str(certificate)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl is not installed")
    with up("--url", url, "--tls-cert", str(certificate), "--tls-key", str(key)) as (_, address):
        assert address.startswith("https://")
        until(lambda: healthy(address), "it serves")


def test_up_starts_while_postgres_is_down() -> None:
    with up("--url", "postgresql://me:secret@127.0.0.1:1/none") as (process, address):
        until(lambda: answers(f"{address}/health/live") == 200, "it serves")
        assert httpx.get(f"{address}/health").status_code == 503
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert "Postgres cannot be reached yet" in process.stderr.read()


def test_pages_of_several_processes_agree_on_what_is_stored(fresh_url: str) -> None:
    with up("--url", fresh_url, "--workers", "4", "--no-access-log") as (process, address):
        until(lambda: healthy(address), "it serves")
        with postbus.connect(fresh_url, upkeep=False) as bus:
            bus.create_stream("orders")
            bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(7)])
        pages = set()
        for _ in range(40):
            # A connection each, so that another process may answer.
            page = httpx.get(f"{address}/console/streams/orders/messages").text
            pages.add(tuple(re.findall(r'id="m(\d+)"', page)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert pages == {tuple(map(str, range(7, 0, -1)))}
