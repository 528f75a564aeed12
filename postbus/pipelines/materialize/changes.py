"""Messages as changes of a table, decoded by Spark's tasks: what a row becomes, or that it goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.codec.exact_json import decode_exactly
from postbus.pipelines.materialize.fields import Field, encoder, kinds_of
from postbus.pipelines.materialize.source_changes import SourceChange, read_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELETED: Final = "postbus-deleted"
# row is null where the key goes; kept names, in JSON, columns that stay as they are; a null key is all keys; problem says why a
# message is no change.
SCHEMA: Final = "key STRING, seq BIGINT, published_at TIMESTAMP, row STRING, kept STRING, problem STRING"


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
        source_table: The table of a source whose changes count, as name or schema.name; those of others are left out.
    """

    fields: tuple[Field, ...]
    of_records: bool
    json_as_text: bool = False
    is_exact: bool = False
    source_table: str | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches of `messages` as those of SCHEMA."""
        encode = encoder(self.fields, json_as_text=self.json_as_text, is_exact=self.is_exact)
        names = ("key", "seq", "published_at", "data", "is_deleted")
        for batch in batches:
            columns = batch.to_pydict()
            rows = [self._change(encode, *each) for each in zip(*(columns[name] for name in names), strict=True)]
            yield _batch([row for row in rows if row is not None])

    def _change(
        self, encode: _Encode, key: str | None, seq: int, published_at: Any, text: str, is_deleted: bool
    ) -> _Change | None:
        """A row of SCHEMA; None for a message about another table."""
        try:
            if is_deleted and key is not None:
                return key, seq, published_at, None, None, None
            change = self._read(decode_exactly(text))
            if change is None:
                return None
            if change.empties:
                return None, seq, published_at, None, None, None
            if key is None:
                raise ValueError("it has no key")  # noqa: TRY301
            if change.record is None:
                return key, seq, published_at, None, None, None
            kept = json.dumps(change.kept) if change.kept else None
            return key, seq, published_at, encode(change.record, change.kept), kept, None
        except ValueError as error:
            return key, seq, published_at, None, None, str(error)

    def _read(self, data: Any) -> SourceChange | None:
        return read_change(data, self.source_table) if self.of_records else SourceChange(data)


_Encode = Callable[[Any, Collection[str]], str]
_Change = tuple[str | None, int, Any, str | None, str | None, str | None]


def _batch(rows: list[_Change]) -> Any:
    import pyarrow

    kinds = (
        ("key", pyarrow.string()),
        ("seq", pyarrow.int64()),
        ("published_at", pyarrow.timestamp("us", tz="UTC")),
        ("row", pyarrow.string()),
        ("kept", pyarrow.string()),
        ("problem", pyarrow.string()),
    )
    arrays = [pyarrow.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(kinds)]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[name for name, _ in kinds])


@dataclass(frozen=True, slots=True)
class Suggester:
    """Finds out which fields records have, and of which types."""

    of_records: bool
    source_table: str | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches of `messages` as those of names and types, each once."""
        import pyarrow

        found: set[tuple[str, str]] = set()
        for batch in batches:
            for text in batch.column("data").to_pylist():
                try:
                    data = decode_exactly(text)
                    change = read_change(data, self.source_table) if self.of_records else SourceChange(data)
                except ValueError:
                    continue  # The decoder says what is wrong with it.
                if change is not None and isinstance(change.record, dict):
                    found.update(
                        kinds_of({name: value for name, value in change.record.items() if name not in change.kept})
                    )
        names, kinds = zip(*sorted(found), strict=True) if found else ((), ())
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(names, pyarrow.string()), pyarrow.array(kinds, pyarrow.string())], names=["name", "kind"]
        )


def suggested(frame: DataFrame, *, of_records: bool, source_table: str | None = None) -> set[tuple[str, str]]:
    """Which fields the records of messages have, and of which types."""
    found = (
        messages(frame).mapInArrow(Suggester(of_records, source_table), "name STRING, kind STRING").distinct().collect()
    )
    return {(row.name, row.kind) for row in found}


def decoded(frame: DataFrame, decoder: Decoder) -> DataFrame:
    """The changes that messages are."""
    return messages(frame).mapInArrow(decoder, SCHEMA)
