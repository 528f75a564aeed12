# Generated from postbus/client/_async/__init__.py by `make generate`; edit that file.

"""The library, generated from `_async`."""
