"""Decodes sources, from rows and from responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from postbus.codec.rows import Row
from postbus.model.errors import Error
from postbus.model.source import SourceCheck, SourceFinding, SourceInfo, SourceTable

_NAMES: Final = tuple(SourceInfo.__dataclass_fields__)


def of_row(row: Row) -> SourceInfo:
    """A source as list_sources returns it."""
    return _source(dict(zip(_NAMES, row, strict=False)))


def of_answer(found: Mapping[str, Any]) -> SourceInfo:
    """A source in a response.

    Raises:
        Error: It lacks a field.
    """
    try:
        times = {name: _moment(found[name]) for name in ("committed_at", "created_at", "updated_at")}
        return _source({**{name: found[name] for name in _NAMES}, **times})
    except (KeyError, TypeError) as error:
        raise Error(
            f"the server's response cannot be decoded: {error}", "use the same version of Postbus in client and server"
        ) from error


def check_of(found: Mapping[str, Any]) -> SourceCheck:
    """What a check found, in a response."""
    findings = tuple(SourceFinding(each["problem"], each["remedy"]) for each in found["findings"])
    return SourceCheck(found["database"], found["version"], tuple(found["tables"]), findings)


def _source(values: dict[str, Any]) -> SourceInfo:
    return SourceInfo(
        **{
            **values,
            "tables": tuple(values["tables"]),
            "operations": tuple(values["operations"]),
            "columns": {table: tuple(columns) for table, columns in values["columns"].items()},
            "found_tables": tuple(
                SourceTable(**{name: each[name] for name in SourceTable.__dataclass_fields__})
                for each in values["found_tables"]
            ),
        }
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
