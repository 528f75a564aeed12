"""Statements about replays."""

from __future__ import annotations

from typing import Final

REPLAY_COPIES: Final = """
select postbus_data.replay_copies($1, $2::uuid, $3, $4, $5, $6::bigint[]::integer[], $7, $8::text[]::timestamptz[], $9, $10, $11,
    $12)
"""
