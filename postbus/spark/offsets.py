"""How far a streaming query has come, as Spark keeps it in the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postbus.model.errors import Conflict
from postbus.spark.slices import State


@dataclass(frozen=True, slots=True)
class Offset:
    """All messages up to seq, which were complete when the offset was made: the range between two offsets never changes.

    Attributes:
        seq: Up to here, in every partition but those of `ahead`.
        system: Which Postgres numbered the messages, and
        timeline: in which of its histories.
        stream_id: The stream; one of the same name that was made anew has another.
        ahead: Partitions that begin later, as (partition, seq).
        after_seq: The batch that ends here begins after this seq instead of the last offset, because of what was lost in between.
    """

    seq: int
    system: str
    timeline: str
    stream_id: int
    ahead: tuple[tuple[int, int], ...] = ()
    after_seq: int | None = None

    def as_json(self) -> dict[str, Any]:
        """For Spark."""
        written: dict[str, Any] = {
            "seq": self.seq,
            "system": self.system,
            "timeline": self.timeline,
            "stream_id": self.stream_id,
        }
        if self.ahead:
            written["ahead"] = {str(partition): seq for partition, seq in self.ahead}
        if self.after_seq is not None:
            written["after_seq"] = self.after_seq
        return written

    @classmethod
    def of(cls, written: dict[str, Any]) -> Offset:
        """From what Spark kept.

        Raises:
            Conflict: It is not an offset of ours.
        """
        try:
            ahead = tuple(sorted((int(p), int(seq)) for p, seq in written.get("ahead", {}).items()))
            return cls(
                int(written["seq"]),
                str(written["system"]),
                str(written["timeline"]),
                int(written["stream_id"]),
                ahead,
                written.get("after_seq"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Conflict(
                f"the checkpoint holds an offset that Postbus did not write: {written}", "use another checkpoint"
            ) from error

    @classmethod
    def at(
        cls, state: State, seq: int, ahead: tuple[tuple[int, int], ...] = (), after_seq: int | None = None
    ) -> Offset:
        """An offset in the present history of a stream. Partitions that seq has reached are not ahead any more."""
        still = tuple((partition, place) for partition, place in ahead if place > seq)
        return cls(seq, state.system, state.timeline, state.stream_id, still, after_seq)

    def history(self) -> tuple[str, str, int]:
        """What seqs mean something in."""
        return self.system, self.timeline, self.stream_id


def history_of(state: State) -> tuple[str, str, int]:
    return state.system, state.timeline, state.stream_id
