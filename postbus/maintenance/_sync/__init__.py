# Generated from postbus/maintenance/_async/__init__.py by `make generate`; edit that file.

"""The service, generated from `_async`."""
