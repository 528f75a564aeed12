"""Writes docs/reference/spark.md: the data source's options, from its docstring."""

from __future__ import annotations

from typing import Final

from postbus.spark.source import PostbusDataSource
from tools.docstrings import as_markdown

_HEAD: Final = """# The Spark data source

Made from the docstring of `postbus.spark.PostbusDataSource` by `make generate`; do not edit.
[How to use it](../how-to/use-spark.md).

"""


def reference() -> str:
    """The page."""
    return f"{_HEAD}{as_markdown(PostbusDataSource)}\n"
