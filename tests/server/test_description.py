"""The API's description is exact: what it allows is accepted, what it does not is refused, answers are as described."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig

from postbus.model.webhook import WEBHOOK_KINDS
from postbus.server import openapi, sequin_fields
from postbus.server.endpoints import ALL
from tests import servers
from tests.server.serving import Api, serving

schemathesis.openapi.format("cron", st.sampled_from(["30 2 * * MON-FRI", "@daily", "*/5 * * * * *"]))
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
schemathesis.openapi.format(
    "webhook-url", st.sampled_from(["https://example.com/hook", "https://example.com:8443/?a=b"])
)
schemathesis.openapi.format("header-name", st.sampled_from(["X-Tenant", "Authorization", "api-key"]))
schemathesis.openapi.format("jsonpath", st.sampled_from(['$.a == "b"', "$.size > 3", "exists($.a)"]))
schemathesis.openapi.format("postgres-url", st.sampled_from(["postgresql://ada:secret@127.0.0.1:1/shop"]))
schemathesis.openapi.format("sql-condition", st.sampled_from(["total > 0", "status <> 'draft'"]))

SCHEMA = schemathesis.openapi.from_dict(
    json.loads(openapi.document(is_open=True)),
    config=SchemathesisConfig.from_dict({"generation": {"deterministic": True}}),
)


@pytest.fixture(scope="module")
def described(server: servers.Server) -> Iterator[Api]:
    """A server with a stream, a consumer and a message of the names that paths are filled with."""
    with servers.database(server.url) as url, serving(url) as api:
        yield api


def prepare(api: Api) -> None:
    """What an earlier example may have deleted."""
    if all(api.get(f"/api/streams/orders/consumers/{name}").status_code == 200 for name in ("billing", "readers")):
        return
    api.post("/api/streams", {"name": "orders", "partitions": 2})
    api.post("/api/streams/orders/consumers", {"name": "billing"})
    api.post("/api/streams/orders/groups", {"name": "readers"})
    api.post("/api/webhook-sources", {"name": "github", "stream": "orders", "kind": "github", "dedup": False})
    api.post("/api/streams/orders/consumers/billing/push", {"url": "https://example.com/hook"})
    api.post("/api/streams/orders/schedules", {"name": "nightly", "cron": "@daily", "data": 1})
    api.post("/api/streams/orders/messages", {"messages": [{"key": "orders.a", "data": 1}]})


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Most requests go to what exists."""
    known = {
        "stream": "orders",
        "consumer": "billing",
        "group": "readers",
        "worker": "w1",
        "schedule": "nightly",
        "key": "orders.a",
        "source": "github",
        "id": "1",
    }
    return path_parameters and {name: known.get(name, value) for name, value in path_parameters.items()}


@schemathesis.hook
def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    return query and {**query, **({"wait_for": 1} if isinstance(query.get("wait_for"), int) else {})}


def _is_valid(name: str, value: Any) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value % 1 == 0 and 1 <= value <= (1_000_000 if name == "max_storage_gb" else 36_500 * 86_400_000)
    return name != "max_storage_gb" and isinstance(value, str) and re.search(sequin_fields.DURATION, value) is not None


def make_source_sensible(body: dict[str, Any]) -> None:
    """What options a webhook source takes depends on its kind, and whether it may deduplicate on its stream."""
    if isinstance(body.get("options"), dict):
        del body["options"]
    if body.get("kind") in WEBHOOK_KINDS:
        body["kind"] = "github"
    if body.get("dedup", "kind" in body) is True:
        body["dedup"] = False


def make_sensible(body: dict[str, Any]) -> None:
    """Wait for nothing, and leave out what JSON Schema cannot say: retain_at_least_ms is not above retain_up_to_ms."""
    if isinstance(body.get("wait_for"), int):
        body["wait_for"] = min(body["wait_for"], 1)
    # Sequin's names of settings, which are not given by two names.
    for name in ("max_storage_gb", "retain_up_to", "retain_at_least"):
        if _is_valid(name, body.get(name)):
            del body[name]
    at_least: Any = body.get("retain_at_least_ms")
    is_number = isinstance(at_least, int | float) and not isinstance(at_least, bool) and at_least % 1 == 0
    if is_number and 0 <= at_least <= 36_500 * 24 * 60 * 60 * 1000:
        del body["retain_at_least_ms"]


@SCHEMA.parametrize()
@settings(max_examples=3, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_endpoint_does_what_is_described(case: Any, described: Api) -> None:
    prepare(described)
    if isinstance(case.body, dict):
        make_sensible(case.body)
        if "webhook-sources" in case.path:
            make_source_sensible(case.body)
    case.call_and_validate(base_url=described.url)


def test_every_endpoint_is_described_and_has_a_summary() -> None:
    described = json.loads(openapi.document(is_open=False))
    for endpoint in ALL:
        operation = described["paths"][endpoint.route.path][endpoint.route.method.lower()]
        assert re.fullmatch(r"[A-Z].*\.", operation["summary"]), operation["summary"]
        assert operation["security"] == [{"token": []}]


def test_the_description_is_served(api: Api) -> None:
    assert api.get("/api/openapi.json").json()["openapi"] == "3.1.0"


def test_every_endpoint_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    for endpoint in ALL:
        assert f"| `{endpoint.route.method} {endpoint.route.path}` | {endpoint.needs} | {endpoint.summary} |" in page
