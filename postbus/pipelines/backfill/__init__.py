"""Backfills a table of Postgres into a stream."""
