"""Pipelines: jobs of Spark from or to a stream, each one read, some transforms and one write.

    import postbus.pipelines

    postbus.pipelines.archive_stream(url, ArchiveOptions(stream="orders", to="/lake"), spark=spark)

`postbus pipeline run` runs the same. Where they stand is in Postgres: `postbus pipeline ls`, `bus.list_pipelines()`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from postbus.spark.missing import explained

if TYPE_CHECKING:
    from postbus.pipelines.archive.compaction import CompactionOptions, CompactionResult, compact_archive
    from postbus.pipelines.archive.pipeline import ArchiveOptions, archive_stream
    from postbus.pipelines.archive.verification import Verified, verify_archive
    from postbus.pipelines.backfill.pipeline import Backfilled, BackfillOptions, backfill_table
    from postbus.pipelines.ingest.options import IngestOptions
    from postbus.pipelines.ingest.pipeline import Ingested, ingest_files
    from postbus.pipelines.materialize.pipeline import Materialized, MaterializeOptions, materialize_stream
    from postbus.pipelines.materialize.to_files import read_snapshot
    from postbus.pipelines.replay.pipeline import ReplayOptions, replay_stream
    from postbus.pipelines.report.facts import Report
    from postbus.pipelines.report.options import ReportOptions
    from postbus.pipelines.report.pipeline import report_streams
    from postbus.pipelines.transform.declarative import DeclarativeOptions, run_declarative
    from postbus.pipelines.transform.pipeline import Transformed, TransformOptions, transform_streams

__all__ = [
    "ArchiveOptions",
    "BackfillOptions",
    "Backfilled",
    "CompactionOptions",
    "CompactionResult",
    "DeclarativeOptions",
    "IngestOptions",
    "Ingested",
    "MaterializeOptions",
    "Materialized",
    "ReplayOptions",
    "Report",
    "ReportOptions",
    "TransformOptions",
    "Transformed",
    "Verified",
    "archive_stream",
    "backfill_table",
    "compact_archive",
    "ingest_files",
    "materialize_stream",
    "read_snapshot",
    "replay_stream",
    "report_streams",
    "run_declarative",
    "transform_streams",
    "verify_archive",
]

_HOMES = {
    "ArchiveOptions": "postbus.pipelines.archive.pipeline",
    "archive_stream": "postbus.pipelines.archive.pipeline",
    "Backfilled": "postbus.pipelines.backfill.pipeline",
    "BackfillOptions": "postbus.pipelines.backfill.pipeline",
    "backfill_table": "postbus.pipelines.backfill.pipeline",
    "DeclarativeOptions": "postbus.pipelines.transform.declarative",
    "run_declarative": "postbus.pipelines.transform.declarative",
    "Ingested": "postbus.pipelines.ingest.pipeline",
    "IngestOptions": "postbus.pipelines.ingest.options",
    "ingest_files": "postbus.pipelines.ingest.pipeline",
    "Materialized": "postbus.pipelines.materialize.pipeline",
    "MaterializeOptions": "postbus.pipelines.materialize.pipeline",
    "materialize_stream": "postbus.pipelines.materialize.pipeline",
    "read_snapshot": "postbus.pipelines.materialize.to_files",
    "ReplayOptions": "postbus.pipelines.replay.pipeline",
    "replay_stream": "postbus.pipelines.replay.pipeline",
    "Report": "postbus.pipelines.report.facts",
    "ReportOptions": "postbus.pipelines.report.options",
    "report_streams": "postbus.pipelines.report.pipeline",
    "Transformed": "postbus.pipelines.transform.pipeline",
    "TransformOptions": "postbus.pipelines.transform.pipeline",
    "transform_streams": "postbus.pipelines.transform.pipeline",
    "CompactionResult": "postbus.pipelines.archive.compaction",
    "CompactionOptions": "postbus.pipelines.archive.compaction",
    "compact_archive": "postbus.pipelines.archive.compaction",
    "Verified": "postbus.pipelines.archive.verification",
    "verify_archive": "postbus.pipelines.archive.verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise explained(error) from error
    return value
