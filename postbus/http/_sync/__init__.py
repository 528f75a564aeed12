# Generated from postbus/http/_async/__init__.py by `make generate`; edit that file.

"""The client of a server, generated from `_async`."""
