"""What to do when later files have other columns or types than the ones before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import types

# Types of whole numbers and of fractions, narrower ones first: each holds all values of those before it.
_WHOLE: Final = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_FRACTION: Final = (types.FloatType, types.DoubleType)
_MOST_DIGITS: Final = 38


@dataclass(slots=True)
class Comparison:
    """How the schema of files differs from the one that is known.

    Attributes:
        schema: The known one, with what the files have besides: new columns, and wider types where no value changes by that.
        changes: What it has besides, in words.
        conflicts: What does not go together, in words. Rows with such values do not fit.
    """

    schema: types.StructType
    changes: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def compare(known: types.StructType, found: types.StructType) -> Comparison:
    """Compare the schema of files with the known one."""
    comparison = Comparison(known)
    comparison.schema = _merge_structs(known, found, "", comparison)
    return comparison


def _merge_structs(known: types.StructType, found: types.StructType, path: str, told: Comparison) -> types.StructType:
    there = {each.name: each.dataType for each in found.fields}
    merged = []
    for each in known.fields:
        kind = each.dataType
        if each.name in there:
            kind = _merge(kind, there[each.name], f"{path}{each.name}", told)
        merged.append(types.StructField(each.name, kind))
    known_names = set(known.fieldNames())
    for each in found.fields:
        if each.name not in known_names:
            merged.append(types.StructField(each.name, each.dataType))
            told.changes.append(f"column {path}{each.name} is new: {each.dataType.simpleString()}")
    return types.StructType(merged)


def _merge(known: types.DataType, found: types.DataType, path: str, told: Comparison) -> types.DataType:
    if known == found:
        return known
    if isinstance(known, types.StructType) and isinstance(found, types.StructType):
        return _merge_structs(known, found, f"{path}.", told)
    if isinstance(known, types.ArrayType) and isinstance(found, types.ArrayType):
        return types.ArrayType(_merge(known.elementType, found.elementType, f"{path}[]", told))
    wider = _wider(known, found)
    if wider is None:
        told.conflicts.append(f"column {path} is {found.simpleString()}, not {known.simpleString()}")
        return known
    if wider != known:
        told.changes.append(f"column {path} is {wider.simpleString()} now, was {known.simpleString()}")
    return wider


def _wider(known: types.DataType, found: types.DataType) -> types.DataType | None:
    """A type that holds all values of both, written as before; None if there is none.

    A whole number never becomes a fraction: 5 would be 5.0 in keys and headers.
    """
    if isinstance(known, types.StringType):
        # Inferred from values that happen to look like numbers.
        return known
    if isinstance(found, types.NullType):
        return known
    if isinstance(known, types.NullType):
        return found
    for family in (_WHOLE, _FRACTION):
        if isinstance(known, family) and isinstance(found, family):
            return max(known, found, key=lambda each: _rank(each, family))
    if isinstance(known, types.DecimalType) and isinstance(found, types.DecimalType):
        scale = max(known.scale, found.scale)
        digits = max(known.precision - known.scale, found.precision - found.scale) + scale
        return types.DecimalType(digits, scale) if digits <= _MOST_DIGITS and scale == known.scale else None
    return None


def _rank(kind: types.DataType, family: tuple[Any, ...]) -> int:
    return next(place for place, each in enumerate(family) if isinstance(kind, each))
