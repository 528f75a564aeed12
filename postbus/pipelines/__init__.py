"""Pipelines: jobs of Spark from or to a stream, each one read, some transforms and one write.

    import postbus.pipelines

    postbus.pipelines.archive_stream(url, ArchiveOptions(stream="orders", to="/lake"), spark=spark)

`postbus pipeline run` runs the same. Where they stand is in Postgres: `postbus pipeline ls`, `bus.list_pipelines()`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postbus.pipelines.archive import ArchiveOptions, archive_stream
    from postbus.pipelines.backfill import Backfilled, BackfillOptions, backfill_table
    from postbus.pipelines.declared import DeclaredOptions, run_declared
    from postbus.pipelines.ingest import Ingested, IngestOptions, ingest_files
    from postbus.pipelines.materialize import MaterializeOptions, materialize_stream
    from postbus.pipelines.replay import ReplayOptions, replay_stream
    from postbus.pipelines.report.facts import Report
    from postbus.pipelines.report.options import ReportOptions
    from postbus.pipelines.report.pipeline import report_streams
    from postbus.pipelines.to_files import read_snapshot
    from postbus.pipelines.transform import TransformOptions, transform_streams
    from postbus.pipelines.upkeep import Tended, UpkeepOptions, tend_archive
    from postbus.pipelines.verification import Verified, verify_archive

__all__ = [
    "ArchiveOptions",
    "BackfillOptions",
    "Backfilled",
    "DeclaredOptions",
    "IngestOptions",
    "Ingested",
    "MaterializeOptions",
    "ReplayOptions",
    "Report",
    "ReportOptions",
    "Tended",
    "TransformOptions",
    "UpkeepOptions",
    "Verified",
    "archive_stream",
    "backfill_table",
    "ingest_files",
    "materialize_stream",
    "read_snapshot",
    "replay_stream",
    "report_streams",
    "run_declared",
    "tend_archive",
    "transform_streams",
    "verify_archive",
]

_HOMES = {
    "ArchiveOptions": "postbus.pipelines.archive",
    "archive_stream": "postbus.pipelines.archive",
    "Backfilled": "postbus.pipelines.backfill",
    "BackfillOptions": "postbus.pipelines.backfill",
    "backfill_table": "postbus.pipelines.backfill",
    "DeclaredOptions": "postbus.pipelines.declared",
    "run_declared": "postbus.pipelines.declared",
    "Ingested": "postbus.pipelines.ingest",
    "IngestOptions": "postbus.pipelines.ingest",
    "ingest_files": "postbus.pipelines.ingest",
    "MaterializeOptions": "postbus.pipelines.materialize",
    "materialize_stream": "postbus.pipelines.materialize",
    "read_snapshot": "postbus.pipelines.to_files",
    "ReplayOptions": "postbus.pipelines.replay",
    "replay_stream": "postbus.pipelines.replay",
    "Report": "postbus.pipelines.report.facts",
    "ReportOptions": "postbus.pipelines.report.options",
    "report_streams": "postbus.pipelines.report.pipeline",
    "TransformOptions": "postbus.pipelines.transform",
    "transform_streams": "postbus.pipelines.transform",
    "Tended": "postbus.pipelines.upkeep",
    "UpkeepOptions": "postbus.pipelines.upkeep",
    "tend_archive": "postbus.pipelines.upkeep",
    "Verified": "postbus.pipelines.verification",
    "verify_archive": "postbus.pipelines.verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
