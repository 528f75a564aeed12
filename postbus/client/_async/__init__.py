"""The library, written once with async; `_sync` is generated from it by `make generate`."""
