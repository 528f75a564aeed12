"""The settings of streams and consumers as fields of forms: labels, help and parsing follow from model/settings.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import bytes_of, seconds_of, written_duration, written_size
from postbus.model.consumer import Exponential, Filter
from postbus.model.errors import InvalidInput
from postbus.model.settings import Setting, choices_of, settings_of
from postbus.server.console.forms import choice, field, text_area, tick
from postbus.server.problems import Problem

# A filter has a field for each of its parts, by the name of the part in an info.
_FILTER: Final = ("filter_key_pattern", "filter_headers", "filter_headers_not", "filter_data")
_SHOWN_FIRST: Final = (
    "partitions",
    "retain_up_to",
    "until_acked",
    "ack_wait",
    "max_deliver",
    "backoff",
    "filter",
    "order",
)


def setting_fields(kind: Any, current: Mapping[str, Any], *, only: Collection[str] = ()) -> Html:
    """A field for each setting, those that are used most on top.

    Args:
        kind: A type of settings.
        current: What they are now, by name, as an info has them; nothing for something new.
        only: The names of the settings, if not all.
    """
    known = {name: setting for name, setting in settings_of(kind).items() if not only or name in only}
    fields = {name: _field(kind, name, setting, current) for name, setting in known.items()}
    first = [shown for name, shown in fields.items() if name in _SHOWN_FIRST]
    rest = [shown for name, shown in fields.items() if name not in _SHOWN_FIRST]
    more = tag("details", tag("summary", "all settings"), tag("div", *rest, class_="grid")) if rest else None
    return join(tag("div", *first, class_="grid"), more)


def parsed(kind: Any, form: Mapping[str, str], current: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The settings that a form changes, and the names of those that it unsets.

    Raises:
        Problem: 400; it names the field.
    """
    given: dict[str, Any] = {}
    unset: list[str] = []
    for name, setting in settings_of(kind).items():
        if setting.kind == "filter":
            found = _filter(form)
            if found is not None and found != _filter(_filter_texts(current)):
                given[name] = found
                unset += [part for part in _FILTER if current.get(part) and not form.get(part, "").strip()]
            elif found is None and any(current.get(part) for part in _FILTER):
                unset.append(name)
            continue
        text = form.get(name, "").strip()
        if setting.kind == "flag":
            if name + "-shown" in form and (text == "yes") != bool(current.get(name)):
                given[name] = text == "yes"
            continue
        if name not in form or text == _text(name, setting, current):
            continue
        if text:
            given[name] = _value(name, setting, text)
        elif setting.can_unset:
            unset.append(name)
    return given, unset


def _field(kind: Any, name: str, setting: Setting, current: Mapping[str, Any]) -> Html:
    label = name.replace("_", " ")
    if setting.kind == "flag":
        shown = tag("input", type="hidden", name=name + "-shown", value="1")
        return join(shown, tick(name, label, is_on=bool(current.get(name)), help=setting.help))
    if setting.kind == "choice":
        return choice(name, label, choices_of(kind, name), str(current.get(name) or setting.default), help=setting.help)
    if setting.kind == "filter":
        texts = _filter_texts(current)
        return tag(
            "fieldset",
            tag("legend", "filter"),
            tag("small", setting.help, class_="soft"),
            field("filter_key_pattern", "key pattern", texts["filter_key_pattern"], placeholder="orders.>"),
            field("filter_data", "JSON path", texts["filter_data"], placeholder="$.amount > 100"),
            text_area("filter_headers", "headers, one on a line", texts["filter_headers"], rows=2, help="name=value"),
            text_area("filter_headers_not", "but not these", texts["filter_headers_not"], rows=2, help="name=value"),
        )
    placeholders = {"duration": "30s, 10m, 2h, 7d", "bytes": "64k, 10M, 1G", "backoff": "1s, 10s, 1m; or exponential"}
    default = _written(setting, setting.default)
    placeholder = placeholders.get(setting.kind, "") if not default else f"{default}"
    return field(name, label, _text(name, setting, current), help=setting.help, placeholder=placeholder or None)


def _text(name: str, setting: Setting, current: Mapping[str, Any]) -> str:
    """A setting as it stands in its field."""
    if setting.kind == "backoff":
        if current.get("backoff_factor") is not None:
            return "exponential"
        return ", ".join(map(written_duration, current.get("backoff") or ()))
    return _written(setting, current.get(name))


def _written(setting: Setting, value: Any) -> str:
    if value is None:
        return ""
    if setting.kind == "duration":
        return written_duration(value)
    return str(written_size(value)) if setting.kind == "bytes" else str(value)


def _value(name: str, setting: Setting, text: str) -> Any:
    try:
        if setting.kind == "duration":
            return seconds_of(text)
        if setting.kind == "bytes":
            return bytes_of(text)
        if setting.kind == "number":
            return int(text.replace(",", ""))
        if setting.kind == "backoff":
            return _backoff(text)
    except InvalidInput as error:
        raise Problem(400, "invalid", f"{name}: {error.message}", hint=error.hint) from None
    except ValueError:
        raise Problem(400, "invalid", f'{name}: "{text[:80]}" is not a number', hint="write digits only") from None
    return text


def _backoff(text: str) -> Any:
    if text == "exponential":
        return Exponential(first=1, cap=300, jitter=0.2)
    return [seconds_of(each.strip()) for each in text.split(",")]


def _filter_texts(current: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for part in _FILTER:
        value = current.get(part)
        texts[part] = (
            "\n".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, Mapping) else value or ""
        )
    return texts


def _filter(form: Mapping[str, str]) -> Filter | None:
    key, headers, headers_not, data = (form.get(part, "").strip() for part in _FILTER)
    if not (key or headers or headers_not or data):
        return None
    return Filter(key=key or None, headers=_pairs(headers), headers_not=_pairs(headers_not), data=data or None)


def _pairs(text: str) -> dict[str, str] | None:
    pairs = [line.partition("=") for line in map(str.strip, text.splitlines()) if line]
    if any(not equals or not name for name, equals, _ in pairs):
        raise Problem(
            400, "invalid", "a header of the filter has no value", hint="write one on each line, as name=value"
        )
    return {name.strip(): value.strip() for name, _, value in pairs} or None
