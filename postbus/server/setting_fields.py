"""The settings of streams and consumers as fields of requests and responses: all of it follows from model/settings.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from postbus.codec.settings import field_name
from postbus.model.duration import as_milliseconds
from postbus.model.settings import Setting, choices_of, settings_of

# These have several fields each, which requests and responses name themselves.
_COMPOSED = ("backoff", "filter")


def request_of(base: type[msgspec.Struct], kind: Any, *, is_edit: bool) -> Any:
    """A struct with the fields of a base and one for each setting.

    In an edit every field may be left out, and null puts a setting back to none.
    """
    fields = [
        (field_name(name, setting), *_type_and_default(kind, name, setting, is_edit=is_edit))
        for name, setting in settings_of(kind).items()
        if setting.kind not in _COMPOSED and field_name(name, setting) not in base.__struct_fields__
    ]
    return _extended(base, fields, forbid_unknown_fields=True)


def response_of(base: type[msgspec.Struct], kind: Any) -> Any:
    """A struct with the fields of a base and one for each setting, as `setting_values` fills it."""
    fields = [
        (field_name(name, setting), value | None if setting.can_unset else value)
        for name, setting in _plain(kind).items()
        for value in (_plain_type(kind, name, setting),)
    ]
    return _extended(base, fields)


def setting_values(kind: Any, info: Any) -> dict[str, Any]:
    """The settings of a stream or consumer by the names of their fields."""
    found: dict[str, Any] = {}
    for name, setting in _plain(kind).items():
        value = getattr(info, name)
        is_time = setting.kind == "duration" and value is not None
        found[field_name(name, setting)] = as_milliseconds(value) if is_time else value
    return found


def given_settings(kind: Any, body: Any) -> dict[str, Any]:
    """The settings that a request gives, as the library takes them."""
    found: dict[str, Any] = {}
    for name, setting in _plain(kind).items():
        value = getattr(body, field_name(name, setting))
        if value is not UNSET and value is not None:
            found[name] = value / 1000 if setting.kind == "duration" else value
    return found


def unset_settings(kind: Any, body: Any) -> tuple[str, ...]:
    """The settings that a request puts back to none, by null."""
    return tuple(
        name for name, setting in _plain(kind).items() if getattr(body, field_name(name, setting), UNSET) is None
    )


def _plain(kind: Any) -> dict[str, Setting]:
    return {name: setting for name, setting in settings_of(kind).items() if setting.kind not in _COMPOSED}


def _extended(base: type[msgspec.Struct], fields: list[Any], **options: Any) -> Any:
    return msgspec.defstruct(
        base.__name__,
        fields,
        bases=(base,),
        module=base.__module__,
        namespace={"__doc__": base.__doc__},
        kw_only=True,
        **options,
    )


def _type_and_default(kind: Any, name: str, setting: Setting, *, is_edit: bool) -> tuple[Any, Any]:
    value = _type(kind, name, setting)
    if is_edit:
        return (value | UnsetType | None if setting.can_unset else value | UnsetType), UNSET
    if setting.default is None:
        return value | None, None
    return value, round(setting.default * 1000) if setting.kind == "duration" else setting.default


def _type(kind: Any, name: str, setting: Setting) -> Any:
    """The type of a setting in a request, with its range."""
    if setting.kind in ("flag", "choice", "name"):
        return _plain_type(kind, name, setting)
    least, most = setting.least or 0, setting.most or 0
    if setting.kind == "duration":
        least, most = round(least * 1000), round(most * 1000)
    return Annotated[int, Meta(ge=int(least), le=int(most))]


def _plain_type(kind: Any, name: str, setting: Setting) -> Any:
    """The type of a setting in a response."""
    if setting.kind in ("flag", "name"):
        return bool if setting.kind == "flag" else str
    return Literal[choices_of(kind, name)] if setting.kind == "choice" else int
