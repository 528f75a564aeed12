"""Settings of a stream by the names and in the forms that Sequin's API of 2024 has for them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.server import problems

_DAY: Final = 24 * 60 * 60
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 60 * 60, "d": _DAY}
_LONGEST_DAYS: Final = 36_500
_FIELDS: Final = {
    "max_storage": "max_storage",
    "retain_up_to": "retain_up_to_ms",
    "retain_at_least": "retain_at_least_ms",
}
DURATION: Final = r"^([0-9]{1,9}(ms|s|m|h|d)|infinite)$"
Duration = (
    Annotated[int, Meta(ge=1, le=_LONGEST_DAYS * _DAY * 1000, description="Milliseconds")]
    | Annotated[str, Meta(pattern=DURATION, description="Such as 30d, or infinite")]
    | None
    | UnsetType
)


class SequinStream(Struct, forbid_unknown_fields=True, kw_only=True):
    """Other names of `max_storage`, `retain_up_to_ms` and `retain_at_least_ms`."""

    max_storage_gb: Annotated[int, Meta(ge=1, le=1000000)] | UnsetType | None = UNSET
    retain_up_to: Duration = UNSET
    retain_at_least: Duration = UNSET


def settings_of(body: SequinStream) -> dict[str, Any]:
    """The settings that a body gives by these names, as the library takes them.

    Raises:
        Problem: One is given by both of its names.
    """
    found: dict[str, Any] = {}
    gigabytes = body.max_storage_gb
    if gigabytes is not UNSET and gigabytes is not None:
        found["max_storage"] = gigabytes * 2**30
    for name, given in (("retain_up_to", body.retain_up_to), ("retain_at_least", body.retain_at_least)):
        if given is not UNSET and given is not None:
            found[name] = _seconds(given)
    for name in found:
        field = _FIELDS[name]
        if getattr(body, field, None) not in (None, UNSET):
            raise problems.invalid(field, "is given by two names", status=422)
    return found


def _seconds(given: int | str) -> float:
    if isinstance(given, int):
        return given / 1000
    parts = re.fullmatch(r"([0-9]+)([a-z]+)", given)
    if parts is None:
        return _LONGEST_DAYS * _DAY
    return int(parts[1]) * _UNITS[parts[2]]
