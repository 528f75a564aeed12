"""The `postbus` command."""
