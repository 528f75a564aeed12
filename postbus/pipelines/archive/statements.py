"""Statements about archives."""

from __future__ import annotations

from typing import Final

OPEN_ARCHIVE: Final = "select postbus_data.open_archive($1, $2, $3, $4)"
ARCHIVE_FORMAT: Final = "select postbus_data.archive_format($1)"
ARCHIVE_PARTS: Final = "select p.* from postbus_data.archive_parts($1) as p"
ARCHIVE_STEPS: Final = "select s.* from postbus_data.archive_steps($1) as s"
COMMIT_ARCHIVE: Final = "select postbus_data.commit_archive($1, $2, $3, $4, $5::jsonb, $6)"
REPLACE_FILES: Final = "select postbus_data.replace_files($1, $2, $3::jsonb)"
EXPIRE_ARCHIVE: Final = "select postbus_data.expire_archive($1, $2)"
REMOVED_FILES: Final = "select f.* from postbus_data.removed_files($1, $2) as f"
FORGET_FILES: Final = "select postbus_data.forget_files($1, $2)"
ARCHIVE_FOLDERS: Final = "select f from postbus_data.archive_folders($1) as f"
