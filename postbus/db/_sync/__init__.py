# Generated from postbus/db/_async/__init__.py by `make generate`; edit that file.

"""The connection pool, generated from `_async`."""
