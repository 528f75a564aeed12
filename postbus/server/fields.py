"""The types of request fields, with the engine's rules for them. The API's description is generated from these."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, UnsetType

_DAY_MS = 24 * 60 * 60 * 1000
_TOKEN = r"[^\x00-\x20\x7f*>.]+"  # noqa: S105
_PATTERN_TOKEN = rf"(\*|{_TOKEN})"
NAME_PATTERN = r"^[A-Za-z0-9_-]{1,63}$"

Name = Annotated[str, Meta(pattern=NAME_PATTERN, description="1 to 63 letters, digits, “_” or “-”")]
Key = Annotated[
    str,
    Meta(
        pattern=rf"^{_TOKEN}(\.{_TOKEN})*$",
        max_length=255,
        description="Tokens joined by dots, such as orders.ada.1, without spaces, “*” and “>”",
    ),
]
KeyPattern = Annotated[
    str,
    Meta(
        pattern=rf"^(>|{_PATTERN_TOKEN}(\.{_PATTERN_TOKEN})*(\.>)?)$",
        max_length=255,
        description="“*” stands for one token, “>” at the end for one or more",
    ),
]
NoNul = Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=10_000, description="Text without NUL characters")]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Time = Annotated[datetime, Meta(tz=True)]
Milliseconds = Annotated[int, Meta(ge=1, le=7 * _DAY_MS)]
Delay = Annotated[int, Meta(ge=0, le=30 * _DAY_MS)]
LongDelay = Annotated[int, Meta(ge=0, le=365 * _DAY_MS)]
Age = Annotated[int, Meta(ge=0, le=3650 * _DAY_MS)]
WaitFor = Annotated[int, Meta(ge=0, le=5 * 60 * 1000, description="How many milliseconds to wait")]
Million = Annotated[int, Meta(ge=1, le=1_000_000)]
Limit = Annotated[int, Meta(ge=1, le=10_000)]
Priority = Annotated[int, Meta(ge=0, le=9, description="Higher first")]
AckId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}(-[0-9]{1,18})?$", description="An ack_id as it was received")]
AckIds = Annotated[list[AckId], Meta(min_length=1, max_length=10_000)]
Seqs = Annotated[list[Seq], Meta(min_length=1, max_length=10_000)]
AnySeqs = Annotated[list[Seq], Meta(max_length=10_000)]
Resume = Annotated[str, Meta(pattern=r"^[fb]:[0-9]{1,9}:[0-9]{1,18}$")]
Rate = Annotated[float, Meta(gt=0, le=1_000_000, description="The largest number of messages per second")]

# Each pattern in words.
WORDS = {
    meta.pattern: meta.description
    for kind in (Name, Key, KeyPattern, NoNul, AckId)
    for meta in kind.__metadata__  # type: ignore[attr-defined]
}

_Value = TypeVar("_Value")


def given(value: _Value | UnsetType) -> _Value | None:
    """A field's value, or None when the field was left out."""
    return None if value is UNSET else value


def moment(time: datetime | UnsetType | None) -> datetime | None:
    """A time in UTC, or None when it was left out: RFC 3339 allows offsets that Postgres does not."""
    if time is UNSET or time is None:
        return None
    try:
        return time.astimezone(UTC)
    except OverflowError:
        # Within a day of the smallest or largest datetime.
        return time.replace(tzinfo=UTC)


def seconds(milliseconds: float | UnsetType | None) -> float | None:
    return None if milliseconds is UNSET or milliseconds is None else milliseconds / 1000
