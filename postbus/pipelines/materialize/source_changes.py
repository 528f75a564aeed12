"""What a message says about a row: as sources write it in each of their formats, or in short, with a record and an action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_ACTIONS: Final = ("insert", "update", "read", "delete", "truncate")
_DEBEZIUM: Final[Mapping[str, str]] = {"c": "insert", "u": "update", "r": "read", "d": "delete", "t": "truncate"}
_UNAVAILABLE: Final = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A change.

    Attributes:
        record: The row that there is now; None when it is gone.
        kept: Columns whose values stay as they are: the message does not have them.
        empties: The whole table is empty now.
    """

    record: Any
    kept: tuple[str, ...] = ()
    empties: bool = False


def read_change(data: Any, table: str | None) -> SourceChange | None:
    """The change that a message is; None if it is about another table than the one that is meant.

    Raises:
        ValueError: It is no change.
    """
    if not isinstance(data, dict):
        raise ValueError("it is not a change: it is not an object")  # noqa: TRY004
    if "op" in data and "source" in data:
        return _debezium(data, table)
    if "deleted" in data and "data" in data:
        action = "delete" if data["deleted"] else data.get("action")
        return _change(action, data["data"], data.get("unchanged_toast"))
    metadata = data.get("metadata")
    place = metadata if isinstance(metadata, dict) else {}
    if table is not None and not _fits(table, place.get("table_schema"), place.get("table_name")):
        return None
    return _change(data.get("action"), data.get("record"), place.get("unchanged_toast"))


def _debezium(data: dict[str, Any], table: str | None) -> SourceChange | None:
    place = data["source"] if isinstance(data["source"], dict) else {}
    if data["op"] == "m" or (table is not None and not _fits(table, place.get("schema"), place.get("table"))):
        return None
    after = data.get("after")
    kept = [name for name, value in after.items() if value == _UNAVAILABLE] if isinstance(after, dict) else None
    return _change(_DEBEZIUM.get(data["op"]), after, kept)


def _change(action: Any, record: Any, kept: Any) -> SourceChange:
    if action not in _ACTIONS:
        raise ValueError("it is not a change: it has no action of insert, update, read, delete and truncate")
    if action == "truncate":
        return SourceChange(None, empties=True)
    if action == "delete":
        return SourceChange(None)
    if not isinstance(record, dict):
        raise ValueError("it is not a change: it has no record")  # noqa: TRY004
    return SourceChange(record, tuple(kept or ()))


def _fits(table: str, schema: Any, name: Any) -> bool:
    return table in (name, f"{schema}.{name}")
