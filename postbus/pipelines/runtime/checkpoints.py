"""Where streaming queries of a pipeline keep how far they are, and how a run knows that this is still there.

A pipeline's plan in Postgres names the folder and the queries in it. A folder that was lost is noticed before anything is
published twice.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from postbus.db.embedded.directory import default_path
from postbus.model.errors import Conflict, InvalidInput
from postbus.pipelines.runtime.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER: Final = "checkpoints"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with one folder for each query.

    Attributes:
        root: The folder that users name.
        writer: The pipeline's name in the ledgers of the streams that it publishes to, and of its folder below the root.
        queries: The ids of the queries that have begun, by their names.
    """

    root: str
    writer: str
    queries: dict[str, str] = field(default_factory=dict)

    def of(self, query: str) -> str:
        """The checkpoint of a query."""
        return f"{self.root}/{self.writer}/{query}"


def planned(run: Run, spark: SparkSession, root: str | None, *, again: bool) -> Checkpoint:
    """The checkpoint of a pipeline, as it was when it first began; with again, a new one.

    Raises:
        Conflict: It is gone.
        InvalidInput: No folder is named, and there is no usual one where Spark runs elsewhere.
    """
    given = None if root is None else _absolute(root)
    new = Checkpoint(given or _usual(spark), f"{run.name.split()[0]}-{secrets.token_hex(8)}")
    known = Checkpoint(**run.plan(asdict(new), anew=again))
    moved = replace(known, root=given or known.root)
    for query, identity in known.queries.items():
        if _identity(spark, moved.of(query)) != identity:
            raise Conflict(
                f'the checkpoint {moved.of(query)} of pipeline "{run.name}" is gone: how far it was is not known any more',
                "put it back, or name where it is by --checkpoint; --again begins anew and publishes everything once more",
            )
    return moved if moved == known else Checkpoint(**run.plan(asdict(moved), anew=True))


def begun(run: Run, known: Checkpoint, queries: dict[str, str]) -> None:
    """Note which queries have begun."""
    if queries.items() - known.queries.items():
        run.plan(asdict(replace(known, queries={**known.queries, **queries})), anew=True)


def _absolute(root: str) -> str:
    return (root if ":" in root else str(Path(root).expanduser().absolute())).rstrip("/")


def _usual(spark: SparkSession) -> str:
    if not (spark.conf.get("spark.master", None) or "").startswith("local"):
        raise InvalidInput(
            "where Spark runs on other machines, a checkpoint has to be named",
            "add --checkpoint with a folder that all of them reach, such as s3a://bucket/checkpoints",
        )
    return str(default_path().absolute() / _FOLDER)


def _identity(spark: SparkSession, folder: str) -> str | None:
    """The id of the query whose checkpoint lies in a folder, which only Spark may be able to reach."""
    from pyspark.errors import AnalysisException

    try:
        (row,) = spark.read.text(f"{folder}/metadata").collect()
        return str(json.loads(row.value)["id"])
    except (AnalysisException, ValueError, KeyError):
        return None
