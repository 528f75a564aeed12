"""Statements of the data source."""

from __future__ import annotations

from typing import Final

SPARK_STATE: Final = "select s.* from postbus_data.spark_state($1) as s"
SPARK_START: Final = "select postbus_data.spark_start($1, $2, $3, $4)"
SPARK_END: Final = "select postbus_data.spark_end($1, $2, $3, $4, $5)"
SPARK_SEGMENTS: Final = "select g.* from postbus_data.spark_segments($1, $2, $3) as g"
SPARK_LOST: Final = "select l.* from postbus_data.spark_lost($1, $2) as l"
SPARK_COMMIT: Final = "select postbus_data.spark_commit($1, $2, $3)"
SPARK_STAGE: Final = """
select postbus_data.spark_stage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[]::timestamptz[], $12::text[]::integer[])
"""
SPARK_STAGE_ROWS: Final = "select postbus_data.spark_stage_rows($1, $2, $3, $4, $5, $6, $7, $8, $9)"
SPARK_BEGIN_BATCH: Final = "select postbus_data.spark_begin_batch($1, $2, $3, $4, $5, $6)"
SPARK_STAGED: Final = "select s.* from postbus_data.spark_staged($1::text[]::uuid[]) as s"
SPARK_ENTER: Final = "select e.layout from postbus_data.begin_publish($1, null) as e"
# Rows that a function returned would be copied several times.
SPARK_PLACE_ROWS: Final = """
select p.*, s.encoded
from postbus_data.spark_place_rows($1, $2, $3) as p
left join postbus_data.spark_staging as s on s.attempt = $2 and s.chunk = $3
"""
SPARK_PUBLISH_CHUNK: Final = """
select postbus_data.spark_publish_chunk($1, s) from postbus_data.spark_staging as s where s.attempt = $2 and s.chunk = $3
"""
SPARK_END_BATCH: Final = "select postbus_data.spark_end_batch($1, $2, $3, $4::text[]::uuid[], $5, $6)"
SPARK_PUBLISH: Final = "select postbus_data.spark_publish($1, $2, $3, $4, $5, $6::text[]::uuid[], $7)"
SPARK_DISCARD: Final = "select postbus_data.spark_discard($1, $2, $3::text[]::uuid[])"
SEQ_SINCE: Final = "select postbus_data.spark_seq_since($1, $2::timestamptz + interval '1 second')"
HISTORY_BOUNDS: Final = "select b.* from postbus_data.history_bounds($1) as b"
PATTERN_REGEX: Final = "select postbus_data.pattern_regex($1)"
ARCHIVE_FILES: Final = "select f.* from postbus_data.archive_files($1, $2, $3, $4, $5) as f"
ARCHIVE_START: Final = "select postbus_data.archive_start($1, $2, $3)"
