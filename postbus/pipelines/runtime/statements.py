"""Statements about pipelines themselves."""

from __future__ import annotations

from typing import Final

BEGIN_PIPELINE: Final = "select postbus_data.begin_pipeline($1, $2, $3, $4, $5::jsonb)"
NOTE_PIPELINE: Final = "select postbus_data.note_pipeline($1, $2::uuid, $3, $4, $5, $6, $7)"
END_PIPELINE: Final = "select postbus_data.end_pipeline($1, $2::uuid, $3, $4)"
PLAN_PIPELINE: Final = "select postbus_data.plan_pipeline($1, $2::uuid, $3::jsonb, $4)"
PIPELINE_POSITION: Final = "select postbus_data.pipeline_position($1)"
STREAM_LIMITS: Final = "select i.data_type, i.max_message_bytes from postbus.stream_info($1) as i"
OPEN_ASIDE: Final = "select postbus_data.open_aside($1)"
SPARK_WRITTEN: Final = "select w.batch_id, w.message_count from postbus_data.spark_written($1, $2) as w"
SPARK_TOTAL: Final = "select w.batch_id, w.total_count from postbus_data.spark_written($1, $2) as w"
