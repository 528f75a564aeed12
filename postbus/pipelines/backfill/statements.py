"""Statements about the ranges of a backfill."""

from __future__ import annotations

from typing import Final

PLAN_RANGES: Final = "select postbus_data.plan_ranges($1, $2::uuid, $3, $4::jsonb)"
OPEN_SNAPSHOT: Final = "select postbus_data.open_snapshot($1, $2::uuid, $3::pg_snapshot, $4::pg_lsn)"
CLOSE_SNAPSHOT: Final = "select postbus_data.close_snapshot($1)"
BEGIN_RANGE: Final = "select r.* from postbus_data.begin_range($1, $2, $3) as r"
END_RANGE: Final = "select postbus_data.end_range($1, $2, $3, $4, $5)"
COPY_RANGE: Final = "select postbus_data.copy_range($1, $2, $3, $4, $5)"
RANGE_COUNTS: Final = "select c.* from postbus_data.range_counts($1) as c"
# How many, as nobody wants their seqs.
PUBLISH_ROWS: Final = "select cardinality(postbus.publish_many($1, $2, $3, bytes => $4))"
