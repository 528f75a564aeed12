# Generated from postbus/transport/_async/schedule_filler.py by `make generate`; edit that file.

"""Works out the times of recurring schedules ahead, so that SQL can publish them."""

from __future__ import annotations

from typing import Protocol, TypeVar

from postbus.model.errors import InvalidInput
from postbus.operations import schedules
from postbus.operations.call import Call

_Result = TypeVar("_Result")


class Runner(Protocol):
    """Runs an operation."""

    def __call__(self, call: Call[_Result]) -> _Result: ...


def fill_schedules(run: Runner) -> int:
    """Fill in the times of the next hour where that is due. Of several who do it at once, one counts for each schedule.

    Returns:
        For how many schedules this call did it.
    """
    count = 0
    for each in run(schedules.to_fill()):
        try:
            found = each.recurrence.filling(each.filled_until, each.now_at, each.catch_up, each.max_catch_up)
            call = schedules.fill(each, found.until, found.occurrences, None)
        except InvalidInput as error:
            # It was created by SQL, which cannot check it.
            call = schedules.fill(each, each.filled_until, (), error.message)
        count += run(call)
    return count
