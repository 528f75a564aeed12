"""Paths find their endpoints."""

from __future__ import annotations

import pytest

from postbus.server.router import Router


def routes() -> Router[str]:
    found: Router[str] = Router()
    found.add("GET", "/streams", "list")
    found.add("GET", "/streams/{stream}", "get")
    found.add("DELETE", "/streams/{stream}", "drop")
    found.add("GET", "/streams/overview", "overview")
    found.add("POST", "/streams/{stream}/messages/{key}", "send")
    return found


@pytest.mark.parametrize(
    ("method", "path", "endpoint", "parameters"),
    [
        ("GET", "/streams", "list", {}),
        ("GET", "/streams/orders", "get", {"stream": "orders"}),
        ("GET", "/streams/overview", "overview", {}),
        ("DELETE", "/streams/orders", "drop", {"stream": "orders"}),
        ("POST", "/streams/é b/messages/{key}", "send", {"stream": "é b", "key": "{key}"}),
    ],
)
def test_a_path_finds_its_endpoint(method: str, path: str, endpoint: str, parameters: dict[str, str]) -> None:
    found = routes().find(method, path)

    assert found is not None
    assert (found.endpoint, found.parameters) == (endpoint, parameters)


@pytest.mark.parametrize(
    "path",
    ["", "/", "streams", "/stream", "/streams/", "/streams//messages/a", "/streams/a/messages", "/streams/a/messages/"],
)
def test_an_invalid_path_matches_no_route(path: str) -> None:
    assert routes().find("GET", path) is None
    assert routes().methods(path) == []


def test_a_path_lists_its_methods() -> None:
    assert routes().find("PUT", "/streams/orders") is None
    assert routes().methods("/streams/orders") == ["DELETE", "GET"]


def test_endpoints_cannot_be_mistaken_for_each_other() -> None:
    with pytest.raises(ValueError, match="is there twice"):
        routes().add("GET", "/streams/{stream}", "another")
    with pytest.raises(ValueError, match=r"is \{stream\} elsewhere"):
        routes().add("GET", "/streams/{name}/x", "another")
