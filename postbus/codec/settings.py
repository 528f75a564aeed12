"""Settings as arguments of SQL functions, and as fields over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from postbus.codec import fields, parameters
from postbus.model.duration import as_milliseconds, as_timedelta
from postbus.model.errors import InvalidInput
from postbus.model.settings import ConsumerSettings, Setting, StreamSettings, check_names, settings_of

_FILTER_PARTS: Final = ("filter_key_pattern", "filter_headers", "filter_headers_not", "filter_data")
_BACKOFF_PARTS: Final = ("backoff", "backoff_factor", "backoff_cap", "backoff_jitter")
_CASTS: Final = {
    "backoff": "::text[]::interval[]",
    "filter_headers": "::jsonb",
    "filter_headers_not": "::jsonb",
}


def given(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings. None means no value for a new stream or consumer, and no change for an existing one.

    Raises:
        TypeError: A name is not a setting.
        InvalidInput: A new stream or consumer cannot be without a setting.
    """
    check_names(kind, settings)
    if kind in (StreamSettings, ConsumerSettings):
        for name, value in settings.items():
            if value is None and settings_of(kind)[name].default is not None:
                raise InvalidInput(f"{name} cannot be None", "leave it out to take the default")
    return {name: value for name, value in settings.items() if value is not None}


def sql_arguments(kind: Any, settings: Mapping[str, Any], *, first: int) -> tuple[str, list[Any]]:
    """Named arguments of an SQL function, and their parameters, numbered from `first`."""
    known = settings_of(kind)
    values: dict[str, Any] = {}
    for name, value in settings.items():
        values |= _sql_values(name, known[name], value)
    text = "".join(f", {name} => ${number}{_CASTS.get(name, '')}" for number, name in enumerate(values, start=first))
    return text, list(values.values())


def http_fields(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as fields of a body."""
    known = settings_of(kind)
    found: dict[str, Any] = {}
    for name, value in settings.items():
        setting = known[name]
        if setting.kind == "backoff":
            found |= fields.backoff(value)
        elif setting.kind == "filter":
            found |= fields.filters(value)
        else:
            found[field_name(name, setting)] = as_milliseconds(value) if setting.kind == "duration" else value
    return found


def field_name(name: str, setting: Setting) -> str:
    """The name of a setting in JSON. For durations, it includes the unit."""
    return f"{name}_ms" if setting.kind in ("duration", "backoff") else name


def info_values(kind: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a response, by name, without backoff and filter, which have several fields each."""
    values: dict[str, Any] = {}
    for name, setting in settings_of(kind).items():
        if setting.kind not in ("backoff", "filter"):
            value = found[field_name(name, setting)]
            is_time = setting.kind == "duration" and value is not None
            values[name] = timedelta(milliseconds=value) if is_time else value
    return values


def unsettable(kind: Any) -> dict[str, str]:
    """The names of settings that can be unset, and their names in JSON."""
    found: dict[str, str] = {}
    for name, setting in settings_of(kind).items():
        if setting.kind == "filter":
            found |= dict(zip(_FILTER_PARTS, _FILTER_PARTS, strict=True))
        elif setting.can_unset:
            found[name] = field_name(name, setting)
    return found


def all_to_unset(names: Iterable[str]) -> list[str]:
    """The names of settings to unset, with the parts of a filter instead of `filter`, the name by which they are set."""
    return [part for name in names for part in (_FILTER_PARTS if name == "filter" else (name,))]


def null_fields(kind: Any, unset: Iterable[str]) -> list[str]:
    """The fields that must be null in a body to unset these settings.

    Raises:
        InvalidInput: A setting cannot be unset.
    """
    known = unsettable(kind)
    for name in unset:
        if name not in known:
            raise InvalidInput(f'"{name}" cannot be unset', f"these can: {', '.join(known)}")
    return [known[name] for name in unset]


def _sql_values(name: str, setting: Setting, value: Any) -> dict[str, Any]:
    if setting.kind == "backoff":
        return dict(zip(_BACKOFF_PARTS, parameters.backoff_parameters(value), strict=True))
    if setting.kind == "filter":
        parts = dict(zip(_FILTER_PARTS, parameters.filter_parameters(value), strict=True))
        return {part: each for part, each in parts.items() if each is not None}
    return {setting.sql_name or name: as_timedelta(value) if setting.kind == "duration" else value}
