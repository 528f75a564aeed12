"""Measures Postbus beside pgmq and beside what plain Postgres can do on the same machine; see README.md."""
