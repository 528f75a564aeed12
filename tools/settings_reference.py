"""Writes docs/reference/settings.md: the settings of streams and consumers."""

from __future__ import annotations

from typing import Any, Final

from postbus.codec.settings import unsettable
from postbus.model.settings import (
    ConsumerChanges,
    ConsumerSettings,
    Setting,
    StreamChanges,
    StreamSettings,
    choices_of,
    settings_of,
)

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"), (0.001, "millisecond"))
_SIZES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))
_HEAD: Final = r"""# Settings

Generated from `postbus/model/settings.py` by `make generate`; do not edit.

Python takes durations in seconds or as `timedelta`, SQL as `interval`, HTTP in milliseconds, by the same name with `_ms`
at its end.
Settings marked with \* cannot be altered later. “none” can be had back by `unset`.
"""


def reference() -> str:
    """The page."""
    return "\n".join(
        [
            _HEAD,
            _table("A stream", StreamSettings, StreamChanges),
            _table("A consumer", ConsumerSettings, ConsumerChanges),
        ]
    )


def _table(title: str, kind: Any, changes: Any) -> str:
    lines = [f"## {title}", "", "| setting | default | allowed | what it does |", "|---|---|---|---|"]
    for name, setting in sorted(settings_of(kind).items()):
        mark = "" if name in settings_of(changes) else " \\*"
        default = "none" if setting.default is None else amount(setting, setting.default)
        lines.append(f"| `{name}`{mark} | {default} | {_allowed(kind, name, setting)} | {setting.help} |")
    names = ", ".join(f"`{name}`" for name in sorted(unsettable(kind)))
    return "\n".join([*lines, "", f"Can be unset: {names}.", ""])


def _allowed(kind: Any, name: str, setting: Setting) -> str:
    if setting.kind == "flag":
        return "true, false"
    if setting.kind == "name":
        return "a name"
    if setting.kind == "choice":
        return ", ".join(choices_of(kind, name))
    if setting.kind == "backoff":
        return "up to 100 delays, or an `Exponential`"
    if setting.kind == "filter":
        return "a `Filter`, or a key pattern"
    least = amount(setting, setting.least or 0)
    return f"{least} and more" if (setting.most or 0) >= 2**62 else f"{least} to {amount(setting, setting.most or 0)}"


def amount(setting: Setting, value: Any) -> str:
    """A value in words, such as 7 days or 8 MiB."""
    if setting.kind == "flag":
        return str(value).lower()
    if setting.kind == "duration":
        unit, word = next(((unit, word) for unit, word in _UNITS if value >= unit and not value % unit), _UNITS[-1])
        count = round(value / unit)
        return "0" if not value else f"{count:,} {word}{'' if count == 1 else 's'}"
    if setting.kind == "bytes":
        unit, word = next((unit, word) for unit, word in _SIZES if value >= unit and not value % unit)
        return f"{value // unit:,} {word}".replace("1 bytes", "1 byte")
    return f"{value:,}" if isinstance(value, int) else str(value)
