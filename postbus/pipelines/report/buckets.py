"""Time in equal parts: the widths of a chart's columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from postbus.model.errors import InvalidInput

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS: Final = (1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 86400, 604800, 2592000)
# As many columns as a chart can show.
_USUAL: Final = 120
_MOST: Final = 2000


@dataclass(frozen=True, slots=True)
class Buckets:
    """So many parts of so many microseconds, the first of them by its number since 1970."""

    first: int
    count: int
    width: int

    @property
    def seconds(self) -> float:
        return self.width / 1e6

    @property
    def starts(self) -> list[datetime]:
        """When each begins, and at last when the last one ends."""
        return [_EPOCH + (self.first + place) * self.width * _MICROSECOND for place in range(self.count + 1)]

    def spread(self, values: Iterable[tuple[int | None, int]]) -> tuple[int, ...]:
        """A value for each bucket: the sum of those with its number. What lies outside is left out."""
        sums = [0] * self.count
        for number, value in values:
            if number is not None and 0 <= number - self.first < self.count:
                sums[number - self.first] += value
        return tuple(sums)


def buckets_between(first: datetime, last: datetime, seconds: float | None = None) -> Buckets:
    """The buckets that hold both moments: of that width, or of one that suits a chart.

    Raises:
        InvalidInput: That would be too many.
    """
    span = (last - first).total_seconds()
    chosen = seconds or next((width for width in _SECONDS if span / width < _USUAL), span / _USUAL)
    width = round(chosen * 1e6)
    low, high = _number(first, width), _number(last, width)
    if high - low >= _MOST:
        raise InvalidInput(
            f"buckets of {chosen:g} seconds would be {high - low + 1:,} from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}",
            f"at most {_MOST:,} can be; make them wider, or the time shorter with --from",
        )
    return Buckets(low, high - low + 1, width)


def _number(moment: datetime, width: int) -> int:
    return (moment - _EPOCH) // _MICROSECOND // width
