"""Finds the endpoint of a path in a tree of path parts, in a time that does not depend on their number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote

_Endpoint = TypeVar("_Endpoint")


@dataclass(slots=True)
class Found(Generic[_Endpoint]):
    """An endpoint, its path with {parameters}, and the values of these parameters."""

    endpoint: _Endpoint
    path: str
    parameters: dict[str, str]


@dataclass(slots=True)
class _Node(Generic[_Endpoint]):
    """The next parts of a path: fixed ones first, else a parameter."""

    parts: dict[str, _Node[_Endpoint]] = field(default_factory=dict)
    parameter: str = ""
    any_part: _Node[_Endpoint] | None = None
    path: str = ""
    endpoints: dict[str, _Endpoint] = field(default_factory=dict)


class Router(Generic[_Endpoint]):
    """Endpoints by path and method."""

    def __init__(self) -> None:
        self._root: _Node[_Endpoint] = _Node()

    def add(self, method: str, path: str, endpoint: _Endpoint) -> None:
        """Add an endpoint at a path, such as /streams/{stream}.

        Raises:
            ValueError: The path has one already, or a parameter has another name in another path.
        """
        node = self._root
        for part in path.split("/"):
            if not part.startswith("{"):
                node = node.parts.setdefault(part, _Node())
                continue
            if node.any_part is None:
                node.parameter, node.any_part = part[1:-1], _Node()
            if node.parameter != part[1:-1]:
                raise ValueError(f"{part} in {path} is {{{node.parameter}}} elsewhere")
            node = node.any_part
        if method in node.endpoints:
            raise ValueError(f"{method} {path} is there twice")
        node.path = path
        node.endpoints[method] = endpoint

    def find(self, method: str, path: str) -> Found[_Endpoint] | None:
        """The endpoint of a request, if there is one. The path is not decoded: “%2F” is a slash within a part."""
        node, parameters = self._node(path)
        endpoint = None if node is None else node.endpoints.get(method)
        return None if node is None or endpoint is None else Found(endpoint, node.path, parameters)

    def methods(self, path: str) -> list[str]:
        """The methods that a path allows."""
        node, _ = self._node(path)
        return [] if node is None else sorted(node.endpoints)

    def _node(self, path: str) -> tuple[_Node[_Endpoint] | None, dict[str, str]]:
        node = self._root
        parameters: dict[str, str] = {}
        parts = path.split("/")
        if "%" in path:
            # Decoded after the split, since a key may contain a slash.
            parts = [unquote(part) for part in parts]
        for part in parts:
            following = node.parts.get(part)
            if following is None:
                following = node.any_part
                if following is None or not part:
                    return None, parameters
                parameters[node.parameter] = part
            node = following
        return node, parameters
