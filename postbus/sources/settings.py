"""The settings of a source, as its reader knows them. Its URL is in here: never show it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from postbus.db.replication.walsender import connection_parts
from postbus.model.errors import Error

OPERATIONS: Final = ("insert", "update", "delete", "truncate")
# What a reader asks for; see `take_source`.
COLUMNS: Final = (
    "id, name, url, tables, operations, columns::text, filters::text, key_template, format, backfill, slot, publication, "
    "is_foreign_publication, version, epoch, system_identifier, timeline, empties"
)


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What a source reads, from where, and as what.

    Attributes:
        url: The database with the tables; None is that of the bus.
        empties: A truncate of each table is to be published before anything else.
    """

    id: int
    name: str
    url: str | None = field(repr=False)
    tables: Sequence[str]
    operations: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    filters: Mapping[str, str]
    key_template: str
    format: str
    backfill: bool
    slot: str
    publication: str
    is_foreign_publication: bool
    version: int = 1
    epoch: int = 0
    system_identifier: str | None = None
    timeline: int | None = None
    empties: bool = False

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> SourceSettings:
        """From what SQL returns for COLUMNS."""
        values = list(row)
        values[5], values[6] = json.loads(values[5]), json.loads(values[6])
        return cls(*values)


class Stopped(Error):
    """A source cannot go on.

    Attributes:
        state: The state that it is in.
        remedy: What to do about it, possibly SQL to paste.
    """

    def __init__(self, state: str, problem: str, remedy: str | None = None) -> None:
        super().__init__(problem, remedy)
        self.state = state
        self.remedy = remedy


def shown_url(url: str) -> str:
    """Where a URL leads to, without what is secret in it.

    Raises:
        InvalidInput: It cannot be understood.
    """
    parts = connection_parts(url)
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{user}{parts.get('host') or parts.get('hostaddr') or 'local'}{port}/{parts.get('dbname') or ''}"
