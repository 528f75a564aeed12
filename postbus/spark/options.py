"""The options of `format("postbus")`: what users write, checked, as values."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from postbus.db import url as urls
from postbus.model.errors import InvalidInput

READ_OPTIONS: Final = (
    "url",
    "stream",
    "read",
    "consumer",
    "startingPosition",
    "endingPosition",
    "minPartitions",
    "keyPattern",
    "dataSchema",
    "maxMessagesPerTrigger",
    "maxBytesPerTrigger",
    "failOnDataLoss",
    "failOnBadData",
    "includeArchive",
    "includePriority",
)
# What option read may say. All but messages are read as they are now.
VIEWS: Final = ("messages", "deadLetters", "consumerStates", "history", "state")
_OF_VIEWS: Final = ("url", "stream", "read", "consumer", "keyPattern")
WRITE_OPTIONS: Final = ("url", "stream", "writerId", "batchId")
# What Spark adds by itself.
_SPARKS_OWN: Final = ("checkpointLocation", "queryName", "path")
_KNOWN: Final = {name.lower(): name for name in (*READ_OPTIONS, *WRITE_OPTIONS)}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, as the user wrote it. What env:NAME and file:PATH stand for is looked up where it is needed."""

    written: str | None

    def resolve(self) -> str:
        """The URL.

        Raises:
            InvalidInput: There is none, or it is not one of Postgres.
        """
        written = self.written or ""
        if written.startswith("env:"):
            found = os.environ.get(written[4:])
            if not found:
                raise InvalidInput(
                    f"the environment variable {written[4:]} that option url names is not set here",
                    "set it for the driver and the executors (spark.executorEnv.NAME), before Spark starts",
                )
        elif written.startswith("file:"):
            try:
                found = Path(written[5:]).read_text().strip()
            except OSError as error:
                raise InvalidInput(
                    f"the file {written[5:]} that option url names cannot be read here: {error.strerror}",
                    "it has to be on the driver and on every executor",
                ) from error
        else:
            found = written
        chosen = urls.choose(found)
        if chosen is None:
            raise InvalidInput(
                "option url is missing",
                'give .option("url", "postgresql://…"), "env:NAME" or "file:PATH", or set POSTBUS_URL',
            )
        return chosen


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a stream: exactly one of the fields is given.

    Attributes:
        word: earliest or latest.
        seq: A message.
        time: What was published since.
        partitions: The seq of a message for each partition.
    """

    word: str | None = None
    seq: int | None = None
    time: datetime | None = None
    partitions: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader is told."""

    address: Address
    stream: str
    view: str
    consumer: str | None
    start: Position
    end: Position
    min_partitions: int | None
    key_pattern: str | None
    data_schema: str | None
    max_messages: int | None
    max_bytes: int | None
    fail_on_data_loss: bool
    fail_on_bad_data: bool
    include_archive: bool
    include_priority: bool = False


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a writer is told."""

    address: Address
    stream: str
    writer_id: str | None
    batch_id: int | None


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a reader.

    Raises:
        InvalidInput: One is unknown, missing or not allowed.
    """
    values = _known(given, READ_OPTIONS, "reading")
    end = _position(values, "endingPosition", "latest")
    if end.partitions is not None or end.word == "earliest":
        raise InvalidInput('option endingPosition is "latest", a seq or a time')
    return ReadOptions(
        address=Address(values.get("url")),
        stream=_stream(values),
        view=_view(values),
        consumer=values.get("consumer"),
        start=_position(values, "startingPosition", "earliest"),
        end=end,
        min_partitions=_count(values, "minPartitions"),
        key_pattern=values.get("keyPattern"),
        data_schema=values.get("dataSchema"),
        max_messages=_count(values, "maxMessagesPerTrigger"),
        max_bytes=_count(values, "maxBytesPerTrigger"),
        fail_on_data_loss=_truth(values, "failOnDataLoss", default=True),
        fail_on_bad_data=_truth(values, "failOnBadData", default=False),
        include_archive=_truth(values, "includeArchive", default=False),
        include_priority=_truth(values, "includePriority", default=False),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer.

    Raises:
        InvalidInput: One is unknown, missing or not allowed.
    """
    values = _known(given, WRITE_OPTIONS, "writing")
    return WriteOptions(
        address=Address(values.get("url")),
        stream=_stream(values),
        writer_id=values.get("writerId"),
        batch_id=_count(values, "batchId", least=0),
    )


def _known(given: Mapping[str, str], allowed: tuple[str, ...], purpose: str) -> dict[str, str]:
    """The options by their right names: Spark does not keep upper and lower case apart."""
    lower = {name.lower() for name in allowed}
    skipped = {name.lower() for name in _SPARKS_OWN}
    values: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() in lower:
            values[_KNOWN[name.lower()]] = value
        elif name.lower() in _KNOWN:
            raise InvalidInput(f"option {_KNOWN[name.lower()]} is not one for {purpose}")
        elif name.lower() not in skipped:
            nearest = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
            raise InvalidInput(
                f'option "{name}" is not known',
                f"did you mean {_KNOWN[nearest[0]]}?" if nearest else f"for {purpose} there are: {', '.join(allowed)}",
            )
    return values


def _stream(values: Mapping[str, str]) -> str:
    if not values.get("stream"):
        raise InvalidInput("option stream is missing", 'give .option("stream", "orders")')
    return values["stream"]


def _view(values: Mapping[str, str]) -> str:
    written = values.get("read", "messages")
    found = next((view for view in VIEWS if view.lower() == written.lower()), None)
    if found is None:
        raise InvalidInput(f'option read = "{written}" is not known', f"there are: {', '.join(VIEWS)}")
    if found != "messages":
        for name in values:
            if name not in _OF_VIEWS:
                raise InvalidInput(f"option {name} is not one for read = {found}")
    return found


def _count(values: Mapping[str, str], name: str, least: int = 1) -> int | None:
    if name not in values:
        return None
    try:
        number = int(values[name])
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidInput(f'option {name} = "{values[name]}" is not a whole number of at least {least}')
    return number


def _truth(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = values.get(name, str(default)).lower()
    if value not in ("true", "false"):
        raise InvalidInput(f'option {name} = "{values[name]}" is neither true nor false')
    return value == "true"


def _position(values: Mapping[str, str], name: str, default: str) -> Position:
    return position_of(values.get(name, default), f"option {name}")


def position_of(written: str, name: str) -> Position:
    """A position as users write it.

    Raises:
        InvalidInput: It is not one.
    """
    text = written.strip()
    if text.lower() in ("earliest", "latest"):
        return Position(word=text.lower())
    if text.isascii() and text.isdigit():
        return Position(seq=int(text))
    try:
        if text.startswith("{"):
            return Position(partitions=tuple(sorted((int(p), int(seq)) for p, seq in json.loads(text).items())))
        time = datetime.fromisoformat(text)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f'{name} = "{text}" is not a position',
            'use earliest, latest, a seq, a time (2026-01-31T08:00:00+00:00), or for a start {"partition": seq, …}',
        ) from None
    return Position(time=time if time.tzinfo else time.replace(tzinfo=UTC))
