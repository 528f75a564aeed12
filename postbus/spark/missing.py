"""What is said when Spark, or a package that it needs, is not installed."""

from __future__ import annotations


def explained(error: ModuleNotFoundError) -> ImportError:
    """The error with the command that installs the package; unchanged if a module of Postbus itself is missing."""
    if error.name is None or error.name.partition(".")[0] == "postbus":
        return error
    return ImportError(f"{error.name} is not installed; run: pip install 'postbus[spark]'", name=error.name)
