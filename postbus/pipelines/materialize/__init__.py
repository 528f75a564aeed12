"""Materializes a stream of changes into a table or files."""
