"""How many rows a run may put aside before it counts as failed: a number, or a share of the rows that it has read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from postbus.model.errors import Conflict, InvalidInput

_LIMIT: Final = re.compile(r"(\d+(?:\.\d+)?)(\s*%)?")
# Before so many rows are read, a share says little; at the end of a run it counts whatever their number.
_ENOUGH: Final = 10_000


@dataclass(frozen=True, slots=True)
class BadLimit:
    """The most rows that may go aside.

    Attributes:
        written: As users write it: 100, or 1%.
        most: The number.
        is_share: Whether it is a percentage.
    """

    written: str
    most: float
    is_share: bool

    def check(self, bad: int, read: int, into: str, *, is_end: bool) -> None:
        """Fail a run that has put more aside.

        Raises:
            Conflict: It has; the rows stay where they are, and what was published stays published.
        """
        if self.is_share and read < _ENOUGH and not is_end:
            return
        if bad > (self.most / 100 * read if self.is_share else self.most):
            raise Conflict(
                f"{bad:,} of {read:,} rows could not be published, and --max-bad allows {self.written}",
                f"see why: postbus stream read {into}",
            )


def parse_limit(written: str | None) -> BadLimit | None:
    """A limit as users write it; None has none.

    Raises:
        InvalidInput: It is neither a number nor a share.
    """
    if written is None:
        return None
    found = _LIMIT.fullmatch(written.strip())
    if found is None or (found[2] is None and "." in found[1]) or (found[2] and float(found[1]) > 100):
        raise InvalidInput(
            f'"{written}" is not a limit for rows put aside', "write a number such as 100, or a share: 1%"
        )
    return BadLimit(written.strip(), float(found[1]), found[2] is not None)
