"""Statements about ingested files."""

from __future__ import annotations

from typing import Final

TAKE_FILES: Final = "select f.* from postbus_data.take_files($1, $2::uuid, $3, $4::jsonb, $5, $6) as f"
FINISH_FILES: Final = "select postbus_data.finish_files($1, $2::uuid, $3, $4, $5)"
INGESTED_FILES: Final = "select f.path from postbus.ingested_files($1) as f where f.state = $2"
