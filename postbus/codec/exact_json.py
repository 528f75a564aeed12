"""JSON whose numbers keep every digit: fractions are Decimals. It takes twice as long as `content`, which makes them floats."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

import msgspec

_decoder: Final = msgspec.json.Decoder(float_hook=Decimal)
_encoder: Final = msgspec.json.Encoder(decimal_format="number")


def decode_exactly(data: str | bytes) -> Any:
    """A JSON value. What msgspec refuses but Postgres takes is decoded by the standard library."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return json.loads(data, parse_float=Decimal)


def encode_exactly(value: Any) -> bytes:
    """The JSON of what `decode_exactly` returns."""
    return _encoder.encode(value)
