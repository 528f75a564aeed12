"""Writes docs/reference/python.md: every name that `postbus` exports, from signatures and docstrings."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import postbus
from postbus.client._sync.push import Push
from postbus.client._sync.schedules import Schedules
from postbus.client._sync.sources import Sources
from postbus.client._sync.tasks import Tasks
from postbus.client._sync.webhook_sources import WebhookSources
from tools.docstrings import as_markdown

_HEAD: Final = """# Python

Made from the docstrings by `make generate`; do not edit.

Every class and function below also has an async form: `connect_async`, `AsyncBus`, `AsyncConsumer` and so on have the same names
to await. A name that this page does not have is not part of the API.
"""
_CALLS: Final[dict[str, tuple[Any, ...]]] = {
    "Connect": (postbus.connect,),
    "The bus": (postbus.Bus,),
    "Consume": (postbus.Consumer, postbus.Queue, postbus.Group, postbus.Member, postbus.Worker),
    "Parts of a bus": (Schedules, Sources, WebhookSources, Push, Tasks, postbus.Tokens, postbus.Upkeep),
    "Functions": (postbus.partition_of,),
}
_LINE: Final = 100


def reference() -> str:
    """The page."""
    sections = [_HEAD]
    for title, members in _CALLS.items():
        sections.append(f"## {title}\n")
        sections += [
            _class(each) if inspect.isclass(each) else _function(each, each.__name__, "###") for each in members
        ]
    sections += ["## Values\n", *(_value(each) for each in _exported() if not issubclass(each, Exception))]
    sections += ["## Errors\n", "[Every error](errors.md), with its SQLSTATE, HTTP status and exit status.\n"]
    return "\n".join(sections)


def _exported() -> Iterator[type]:
    """The classes that are values: what calls take and return."""
    shown = {each for members in _CALLS.values() for each in members}
    for name in sorted(postbus.__all__):
        value = getattr(postbus, name)
        if inspect.isclass(value) and value not in shown and not name.startswith("Async"):
            yield value


def _class(kind: type) -> str:
    parts = [f"### `{kind.__name__}`\n", as_markdown(kind) + "\n"]
    for name, member in _members(kind):
        if isinstance(member, property):
            parts.append(f"#### `{kind.__name__}.{name}`\n\n{as_markdown(member)}\n")
        else:
            parts.append(_function(member, f"{kind.__name__}.{name}", "####"))
    return "\n".join(parts)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers(kind):
        if (
            not name.startswith("_")
            and (inspect.isfunction(member) or isinstance(member, property))
            and inspect.getdoc(member)
        ):
            yield name, member


def _function(function: Any, name: str, level: str) -> str:
    return f"{level} `{name}`\n\n```python\n{_signature(function, name.rpartition('.')[2])}\n```\n\n{as_markdown(function)}\n"


def _signature(function: Any, name: str) -> str:
    """The signature as it is written, on one line or with a line for each argument."""
    signature = inspect.signature(function)
    parameters = [_plain(str(each)) for each in signature.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if keyword in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(keyword), "*")
    returns = (
        ""
        if signature.return_annotation is inspect.Signature.empty
        else f" -> {_plain(str(signature.return_annotation))}"
    )
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= _LINE:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){returns}"])


def _plain(text: str) -> str:
    # A default that stands for nothing given has no other form.
    text = re.sub(r"<object object at \w+>", "...", text)
    return re.sub(r"<([\w.]+): .*?>", r"\1", text).replace("'", "")


def _value(kind: type) -> str:
    parts = [f"### `{kind.__name__}`\n", as_markdown(kind) + "\n"]
    if not issubclass(kind, (tuple, dict, int, enum.Enum)):
        parts += [f"- `{name}`: {as_markdown(member)}" for name, member in _properties(kind)]
        parts.append("")
    return "\n".join(parts)


def _properties(kind: type) -> list[tuple[str, Any]]:
    return [(name, member) for name, member in _members(kind) if isinstance(member, property)]
