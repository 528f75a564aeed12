"""Lets psycopg take our arrays as parameters. Programs that speak to a server need the arrays, but no psycopg."""

from __future__ import annotations

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

from postbus.db.arrays import Array, BigintArray, BytesArray, JsonbArray, TextArray, encode


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return encode(obj)


class _TextArrayDumper(_ArrayDumper):
    oid = 1009


class _BytesArrayDumper(_ArrayDumper):
    oid = 1001


class _JsonbArrayDumper(_ArrayDumper):
    oid = 3807


class _BigintArrayDumper(_ArrayDumper):
    oid = 1016


def register(context: AdaptContext) -> None:
    """Register these arrays with a connection. They are our own types, so nothing else changes."""
    for array, dumper in (
        (TextArray, _TextArrayDumper),
        (BytesArray, _BytesArrayDumper),
        (JsonbArray, _JsonbArrayDumper),
        (BigintArray, _BigintArrayDumper),
    ):
        context.adapters.register_dumper(array, dumper)
