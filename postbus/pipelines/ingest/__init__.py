"""Ingests files into a stream."""
