"""Transforms a stream into another, with SQL or a user's function."""
