# Generated from postbus/transport/_async/__init__.py by `make generate`; edit that file.

"""The transports, generated from `_async`."""
