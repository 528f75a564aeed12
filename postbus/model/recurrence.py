"""The times of a recurring schedule: of a cron expression in a time zone, or of an interval on a fixed grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from postbus.model.errors import InvalidInput

if TYPE_CHECKING:
    from cronsim import CronSim

CatchUp = Literal["latest", "skip", "all"]
CATCH_UPS: Final = get_args(CatchUp)
# A time that passed no longer ago than this is late, and not missed.
_LATE: Final = timedelta(minutes=1)
_AHEAD: Final = timedelta(hours=1)
# Of one that runs each second, an hour.
_MOST_AHEAD: Final = 3600
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class Filling:
    """What is filled in for a schedule.

    Attributes:
        occurrences: The times, in order.
        until: All times up to here are among them.
    """

    occurrences: list[datetime]
    until: datetime


@dataclass(frozen=True, slots=True)
class Recurrence:
    """When a schedule recurs.

    Attributes:
        cron: A cron expression; None if there is an interval.
        every: An interval; None if there is an expression.
        time_zone: The zone of the expression.
        begins_at: Where the grid of the interval begins.
    """

    cron: str | None
    every: timedelta | None
    time_zone: str
    begins_at: datetime

    def check(self) -> None:
        """Refuse what has no times.

        Raises:
            InvalidInput: The expression or the zone is not one, or it never fires.
        """
        zone = _zone(self.time_zone)
        if self.cron is not None and next(_simulated(self.cron, datetime.now(zone)), None) is None:
            raise InvalidInput(f'cron "{self.cron}" never fires')

    def after(self, time: datetime) -> Iterator[datetime]:
        """The times after one."""
        if self.every is not None:
            k = (time - self.begins_at) // self.every + 1
            while True:
                yield self.begins_at + k * self.every
                k += 1
        for found in _simulated(self.cron or "", time.astimezone(_zone(self.time_zone))):
            yield found.astimezone(UTC)

    def up_to(self, time: datetime) -> Iterator[datetime]:
        """The times up to one, the last of them first."""
        if self.every is not None:
            k = (time - self.begins_at) // self.every
            while k >= 0:
                yield self.begins_at + k * self.every
                k -= 1
            return
        # A second later, since the simulation leaves out where it begins.
        begin = (time + timedelta(seconds=1)).replace(microsecond=0).astimezone(_zone(self.time_zone))
        for found in _simulated(self.cron or "", begin, reverse=True):
            if found <= time:
                yield found.astimezone(UTC)

    def filling(self, after: datetime, now: datetime, catch_up: CatchUp, max_catch_up: int) -> Filling:
        """What to fill in, given up to where that was done.

        Of times that were missed, only those that are to be caught up on: after a long outage there are many.
        """
        most_missed = {"skip": 0, "latest": 1, "all": max_catch_up}[catch_up]
        begin = max(after, now - _LATE)
        missed = islice(takewhile(lambda time: time > after, self.up_to(begin)), most_missed) if begin > after else ()
        ahead = self._ahead(begin, now)
        until = ahead[-1] if len(ahead) == _MOST_AHEAD else max(now + _AHEAD, *ahead[-1:])
        return Filling([*reversed(list(missed)), *ahead], until)

    def _ahead(self, begin: datetime, now: datetime) -> list[datetime]:
        """The times of the next hour, and at least one."""
        found: list[datetime] = []
        for time in islice(self.after(begin), _MOST_AHEAD):
            if time > now + _AHEAD and found and found[-1] > now:
                break
            found.append(time)
        return found


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(f'time_zone "{name}" is not known', "use a name such as UTC or Europe/Berlin") from error


def _simulated(cron: str, begin: datetime, *, reverse: bool = False) -> CronSim:
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(_ALIASES.get(cron.strip().lower(), cron), begin, reverse=reverse)
    except CronSimError as error:
        raise InvalidInput(
            f'cron "{cron}" is not an expression that fires: {error}',
            "write minute, hour, day, month and day of the week: 30 2 * * MON-FRI",
        ) from error
