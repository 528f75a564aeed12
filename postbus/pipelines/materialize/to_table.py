"""A table of Postgres as the target of materialize."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postbus.db import session
from postbus.pipelines.materialize import merging, target_table
from postbus.pipelines.materialize.changes import Decoder, messages
from postbus.pipelines.materialize.fields import Field
from postbus.pipelines.materialize.step_result import StepResult
from postbus.pipelines.materialize.target_table import Place
from postbus.spark.errors import hide_traceback
from postbus.spark.options import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STAGED = "attempt STRING, staged BIGINT, bad BIGINT, bad_seq BIGINT, problem STRING"


class Table:
    """Changes are staged by tasks, and merged in one transaction with the position."""

    def __init__(self, address: Address, table: str, *, is_history: bool) -> None:
        self._address = address
        self._place = Place.of(table, f"postbus_stage_{secrets.token_hex(6)}")
        self._is_history = is_history
        self._staged: list[tuple[str, int]] = []

    def open(
        self, source: str, fields: tuple[Field, ...], start_seq: int, *, again: bool
    ) -> tuple[int, tuple[Field, ...]]:
        """Where the table stands, and the fields that it has."""
        with session.transaction(self._address.resolve()) as database:
            found = target_table.open_table(
                database, self._place, source, _pairs(fields), start_seq, is_history=self._is_history, again=again
            )
        return found.position_seq, tuple(Field(*pair) for pair in found.fields)

    def take(self, frame: DataFrame, decoder: Decoder) -> StepResult:
        """Stage the changes of messages."""
        rows = messages(frame).mapInArrow(_Stager(decoder, self._address, self._place), _STAGED).collect()
        self._staged = [(row.attempt, row.staged) for row in rows]
        worst = min((row for row in rows if row.bad), key=lambda row: row.bad_seq, default=None)
        bad = sum(row.bad for row in rows)
        count = bad + sum(row.staged for row in rows)
        return StepResult(count, bad, *((worst.bad_seq, worst.problem) if worst else (None, None)))

    def commit(self, after_seq: int, to_seq: int, fields: tuple[Field, ...]) -> None:
        """Apply what was taken."""
        with session.transaction(self._address.resolve()) as database:
            merging.merge(
                database, self._place, after_seq, to_seq, self._staged, _pairs(fields), is_history=self._is_history
            )

    def abandon(self) -> None:
        """Forget what was taken."""
        with session.transaction(self._address.resolve()) as database:
            target_table.empty_stage(database, self._place)

    def close(self) -> None:
        """Leave nothing behind."""
        with session.transaction(self._address.resolve()) as database:
            target_table.close_table(database, self._place)


@dataclass(frozen=True, slots=True)
class _Stager:
    """What a task does: decode its messages and stage the changes in one transaction."""

    decoder: Decoder
    address: Address
    place: Place

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        attempt, staged = str(uuid.uuid4()), 0
        bad: list[tuple[int, str]] = []
        try:
            with session.transaction(self.address.resolve()) as database:
                for batch in self.decoder(batches):
                    problems = batch.column("problem")
                    good = batch.filter(problems.is_null())
                    staged += good.num_rows
                    merging.stage_rows(database, self.place, attempt, good.to_pydict())
                    bad += [(row["seq"], row["problem"]) for row in batch.filter(problems.is_valid()).to_pylist()]
        except Exception:
            hide_traceback()
            raise
        # Messages are in order of their keys, not of their seqs.
        values = (attempt, staged, len(bad), *min(bad, default=(None, None)))
        kinds = (pyarrow.string(), pyarrow.int64(), pyarrow.int64(), pyarrow.int64(), pyarrow.string())
        arrays = [pyarrow.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=["attempt", "staged", "bad", "bad_seq", "problem"])


def _pairs(fields: Iterable[Field]) -> list[tuple[str, str]]:
    return [(field.name, field.type) for field in fields]
