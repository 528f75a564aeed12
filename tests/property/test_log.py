"""Random histories of publishing, rolling, purging and reading, compared with a list in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import postbus
from postbus import Message

KEYS = ["a", "a.b", "a.b.c", "b", "b.c", None]
PATTERNS: dict[str, Callable[[str], bool]] = {
    "a.>": lambda key: key.startswith("a."),
    "*.b": lambda key: key == "a.b",
    "b": lambda key: key == "b",
    ">": lambda key: True,
}


@dataclass
class Model:
    """What a stream should hold: its messages in order, and where it starts."""

    messages: list[Message] = field(default_factory=list)
    start: int = 0

    def matching(self, read: dict[str, Any]) -> list[int]:
        pattern = PATTERNS.get(read.get("key_pattern", ""))
        seqs = [
            m.seq
            for m in self.messages
            if m.seq is not None
            and m.seq >= max(self.start, read.get("from_seq", 0))
            and m.seq <= read.get("to_seq", 10**9)
            and ("key" not in read or m.key == read["key"])
            and (pattern is None or (m.key is not None and pattern(m.key)))
            and ("partition" not in read or (m.key is not None and postbus.partition_of(m.key, 3) == read["partition"]))
        ]
        return seqs[::-1] if read.get("backwards") else seqs


publishes = st.tuples(st.just("publish"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=6), st.booleans())
steps = st.one_of(
    publishes,
    publishes,
    st.tuples(st.just("roll"), st.none(), st.none()),
    st.tuples(st.just("gap"), st.integers(1, 200_000), st.none()),
    st.tuples(st.just("purge"), st.integers(0, 30), st.none()),
)
reads = st.fixed_dictionaries(
    {"backwards": st.booleans(), "page_size": st.integers(1, 5)},
    optional={
        "from_seq": st.integers(0, 40),
        "to_seq": st.integers(0, 40),
        "key": st.sampled_from([key for key in KEYS if key]),
        "key_pattern": st.sampled_from(sorted(PATTERNS)),
        "partition": st.integers(0, 2),
    },
)


@pytest.fixture(scope="module")
def stage(url: str) -> Any:
    with postbus.connect(url) as bus, psycopg.connect(url) as connection:
        yield bus, connection


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, max_size=12), st.lists(reads, min_size=1, max_size=6))
def test_reading_finds_what_was_committed_and_nothing_else(
    stage: Any, history: list[tuple[str, Any, Any]], questions: list[dict[str, Any]]
) -> None:
    bus, connection = stage
    for info in bus.list_streams():
        if info.name == "model":
            bus.drop_stream("model")
    bus.create_stream("model", partitions=3)
    model = Model()
    for step, argument, commit in history:
        take(bus, connection, model, step, argument, commit)
    for question in questions:
        if "partition" in question and any(m.key is None for m in model.messages):
            continue  # Where a message without a key goes is not promised.
        assert [m.seq for m in bus.scan("model", **question)] == model.matching(question), question


def take(bus: postbus.Bus, connection: Any, model: Model, step: str, argument: Any, commit: Any) -> None:
    if step == "publish":
        batch = [Message(key=key, data=0) for key in argument]
        seqs = bus.publish_many("model", batch, connection=connection)
        if commit:
            connection.commit()
            model.messages += [Message(key=m.key, data=0, seq=seq) for m, seq in zip(batch, seqs, strict=True)]
        else:
            connection.rollback()
    elif step == "roll":
        connection.execute("update postbus_data.stream set roll_due = true where name = 'model'")
        connection.commit()
        bus.maintain("model")
    elif step == "gap":
        stream_id = bus.stream_info("model").id
        connection.execute(
            f"select setval('postbus_data.seq_{stream_id}', last_value + {argument}) from postbus_data.seq_{stream_id}"
        )
        connection.commit()
    elif step == "purge":
        model.start = bus.purge("model", before_seq=argument)
