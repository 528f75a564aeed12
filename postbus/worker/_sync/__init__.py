# Generated from postbus/worker/_async/__init__.py by `make generate`; edit that file.

"""The worker, generated from `_async`."""
