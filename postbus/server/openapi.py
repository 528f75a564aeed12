"""The API's description, generated from the types that the endpoints check."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec

import postbus
from postbus.server.endpoint import Endpoint
from postbus.server.endpoints import ALL
from postbus.server.endpoints.messages import NewMessage
from postbus.server.fields import NAME_PATTERN, Key, KeyPattern
from postbus.server.problems import ErrorAnswer
from postbus.server.receiving import description as receiving_description

_TEMPLATE: Final = "#/components/schemas/{name}"
_ERROR_REF: Final = {"$ref": _TEMPLATE.format(name="ErrorAnswer")}
_STATUS_TEXT: Final = {
    400: "The request is invalid.",
    401: "A valid token is required.",
    403: "The token does not allow this.",
    404: "It does not exist.",
    405: "The path does not support this method.",
    408: "The body did not arrive.",
    409: "It conflicts with the current state.",
    413: "The body or a message is too large.",
    415: "The body is in a form that the stream cannot hold.",
    422: "A setting is invalid.",
    429: "The token is used too often.",
    503: "Postgres cannot be used now.",
    507: "The stream is full.",
}
_NAME: Final = {"type": "string", "pattern": NAME_PATTERN}
_PATH_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "stream": {"schema": _NAME, "description": "A stream's name, or its id"},
    "consumer": {"schema": _NAME, "description": "A consumer's name, or its id"},
    "schedule": {"schema": _NAME, "description": "A schedule's name"},
    "source": {"schema": _NAME, "description": "A source's name"},
    "queue": {
        "schema": {"type": "string", "pattern": "^([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\\.fifo)$"},
        "description": "The name of a queue for clients of SQS",
    },
    "group": {"schema": _NAME, "description": "A group's name, or its id"},
    "worker": {"schema": _NAME, "description": "A worker's name, which it chooses"},
    "id": {"schema": {"type": "string", "pattern": "^[0-9]{1,9}$"}, "description": "A token's id"},
    "task": {"schema": {"type": "string", "pattern": "^[0-9]{1,18}$"}, "description": "The number of a task"},
    "pattern": {"schema": msgspec.json.schema(KeyPattern), "description": "A pattern of channels' names"},
    "key": {"schema": msgspec.json.schema(Key), "description": "A message's key"},
}
_PROBE: Final = {
    "type": "object",
    "properties": {"alive": {"type": "boolean"}, "ready": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["alive"],
}


@cache
def document(*, is_open: bool) -> bytes:
    """The description as JSON, by OpenAPI 3.1."""
    types = [each for endpoint in ALL for each in (endpoint.body, endpoint.query, endpoint.answer) if each is not None]
    types += [ErrorAnswer, NewMessage]
    schemas, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    for kind in types:
        if extra := getattr(kind, "schema_extra", None):
            components[kind.__name__].update(extra)
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Postbus",
            "version": postbus.__version__,
            "description": "A message bus in Postgres, over HTTP.",
        },
        "paths": _paths(by_type, components, is_open=is_open),
        "components": {"schemas": components},
    }
    if not is_open:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return msgspec.json.encode(description)


def _paths(by_type: dict[str, Any], components: dict[str, Any], *, is_open: bool) -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/health": {"get": _probe("health", "Report whether requests can be served, or why not.", (200, 503))},
        "/health/live": {"get": _probe("live", "Report that the server is running.", (200,))},
    }
    paths["/api/webhook/{source}"] = receiving_description(_path_parameters("/{source}"), _error)
    for endpoint in ALL:
        paths.setdefault(endpoint.route.path, {})[endpoint.route.method.lower()] = _operation(
            endpoint, by_type, components, is_open=is_open
        )
    return paths


def _probe(name: str, summary: str, statuses: tuple[int, ...]) -> dict[str, Any]:
    content = {"application/json": {"schema": _PROBE}}
    return {
        "operationId": name,
        "summary": summary,
        "responses": {str(status): {"description": summary, "content": content} for status in statuses},
    }


def _operation(
    endpoint: Endpoint, by_type: dict[str, Any], components: dict[str, Any], *, is_open: bool
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.route.path), *_query_parameters(endpoint, components)],
        "responses": {
            "200": {
                "description": endpoint.summary,
                "content": {"application/json": {"schema": by_type[repr(endpoint.answer)]}},
            },
            **{str(status): _error(status) for status in _statuses(endpoint, is_open=is_open)},
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {"application/json": {"schema": by_type[repr(endpoint.body)]}},
        }
    if not is_open:
        operation["security"] = [{"token": []}]
    return operation


def _statuses(endpoint: Endpoint, *, is_open: bool) -> list[int]:
    statuses = {400, 403, 404, 409, 503}
    if endpoint.body is not None:
        statuses |= {408, 413, endpoint.invalid_status}
    if endpoint.route.scope == "publish":
        statuses.add(507)
    if not is_open:
        statuses |= {401, 429}
    return sorted(statuses)


def _error(status: int) -> dict[str, Any]:
    return {"description": _STATUS_TEXT[status], "content": {"application/json": {"schema": _ERROR_REF}}}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, **_PATH_PARAMETERS[name]}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(endpoint: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    schema = components[endpoint.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", []), "schema": field}
        for name, field in schema["properties"].items()
    ]
