"""Messages as changes of a table, decoded by Spark's tasks: what a row becomes, or that it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.codec.exact_json import decode_exactly
from postbus.pipelines.materialize.fields import Field, encoder, kinds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELETED: Final = "postbus-deleted"
_ACTIONS: Final = ("insert", "update", "read", "delete")
# row is null where the key goes; problem says why a message is no change.
SCHEMA: Final = "key STRING, seq BIGINT, published_at TIMESTAMP, row STRING, problem STRING"


def messages(frame: DataFrame) -> DataFrame:
    """Of a stream what makes changes of it."""
    from pyspark.sql import functions as F  # noqa: N812

    is_deleted = F.coalesce(F.map_contains_key("headers", F.lit(_DELETED)), F.lit(False))
    return frame.select("key", "seq", "published_at", "data", is_deleted.alias("is_deleted"))


@dataclass(frozen=True, slots=True)
class Decoder:
    """Turns messages into changes.

    Attributes:
        fields: The fields of the table.
        of_records: Whether data is a change, with record and action, and not the row itself.
        json_as_text: Whether values of type JSON become texts.
        is_exact: Whether a number that a DOUBLE cannot hold does not fit it. Else it is rounded.
    """

    fields: tuple[Field, ...]
    of_records: bool
    json_as_text: bool = False
    is_exact: bool = False

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches of `messages` as those of SCHEMA."""
        import pyarrow

        encode = encoder(self.fields, json_as_text=self.json_as_text, is_exact=self.is_exact)
        for batch in batches:
            columns = batch.to_pydict()
            rows: list[str | None] = []
            problems: list[str | None] = []
            for key, text, is_deleted in zip(columns["key"], columns["data"], columns["is_deleted"], strict=True):
                row, problem = None, None
                try:
                    if key is None:
                        raise ValueError("it has no key")  # noqa: TRY301
                    record = None if is_deleted else self._record(decode_exactly(text))
                    row = None if record is None else encode(record)
                except ValueError as error:
                    problem = str(error)
                rows.append(row)
                problems.append(problem)
            yield pyarrow.RecordBatch.from_arrays(
                [
                    *(batch.column(name) for name in ("key", "seq", "published_at")),
                    pyarrow.array(rows, pyarrow.string()),
                    pyarrow.array(problems, pyarrow.string()),
                ],
                names=["key", "seq", "published_at", "row", "problem"],
            )

    def _record(self, data: Any) -> Any:
        """The record that a message leaves; None when it goes."""
        if not self.of_records:
            return data
        if not isinstance(data, dict) or data.get("action") not in _ACTIONS:
            raise ValueError("it is not a change: it has no action of insert, update, read and delete")
        if data["action"] == "delete":
            return None
        if not isinstance(data.get("record"), dict):
            raise ValueError("it is not a change: it has no record")  # noqa: TRY004
        return data["record"]


@dataclass(frozen=True, slots=True)
class Suggester:
    """Finds out which fields records have, and of which types."""

    of_records: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches of `messages` as those of names and types, each once."""
        import pyarrow

        found: set[tuple[str, str]] = set()
        for batch in batches:
            for text in batch.column("data").to_pylist():
                try:
                    data = decode_exactly(text)
                except ValueError:
                    continue  # The decoder says what is wrong with it.
                record = data.get("record") if self.of_records and isinstance(data, dict) else data
                found.update(kinds_of(record))
        names, kinds = zip(*sorted(found), strict=True) if found else ((), ())
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(names, pyarrow.string()), pyarrow.array(kinds, pyarrow.string())], names=["name", "kind"]
        )


def suggested(frame: DataFrame, *, of_records: bool) -> set[tuple[str, str]]:
    """Which fields the records of messages have, and of which types."""
    found = messages(frame).mapInArrow(Suggester(of_records), "name STRING, kind STRING").distinct().collect()
    return {(row.name, row.kind) for row in found}


def decoded(frame: DataFrame, decoder: Decoder) -> DataFrame:
    """The changes that messages are."""
    return messages(frame).mapInArrow(decoder, SCHEMA)
