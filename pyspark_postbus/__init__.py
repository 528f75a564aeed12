"""Spark looks into modules of such names by itself: with Postbus installed, `format("postbus")` needs no registration."""

from postbus.spark.source import PostbusDataSource as DefaultSource

__all__ = ["DefaultSource"]
