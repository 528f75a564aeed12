"""`postbus pipeline`: jobs of Spark from or to streams. Spark is imported only when one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postbus.cli import output, targets
from postbus.cli.options import KeyPattern, StreamName, open_bus, seconds, size
from postbus.cli.shared import OUTPUT, TARGET, Commands
from postbus.model.errors import Conflict, Error, InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postbus import Bus

_Options = TypeVar("_Options")

# A pipeline works on Postgres itself, so there is no request to show.
app = Commands("Pipelines on Spark: run, list.", shared=(*TARGET, *OUTPUT))
run_app = Commands("Run a pipeline.", shared=(*TARGET, *OUTPUT))
app.add_typer(run_app, name="run")

Master = Annotated[
    str | None, typer.Option(help="The Spark to use, such as spark://host:7077; without it, this machine.")
]
Remote = Annotated[str | None, typer.Option(help="A server of Spark Connect to use, such as sc://host.")]
Options = Annotated[
    Path | None, typer.Option("--options", help="A YAML file with options by the names of these flags; flags go first.")
]
Continuous = Annotated[
    bool, typer.Option("--continuous/--once", help="Go on until Ctrl-C, or end when what is there now is done.")
]


@app.command("ls")
def ls() -> None:
    """List pipelines: state, rate, lag, last error.

    Example: postbus pipeline ls
    """
    columns = ("name", "state", "message_count", "rate", "lag_estimate", "position_seq", "noted_at", "last_error")
    with _postgres() as bus:
        found = bus.list_pipelines()
    output.emit(found, columns, empty="no pipelines yet; run one: postbus pipeline run archive orders --to /lake")


@run_app.command("archive")
def archive(
    stream: StreamName,
    to: Annotated[
        str | None, typer.Option(help="The folder of the lake: a path here, or one that Spark can reach.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="How many messages a step takes at most; 1,000,000.")] = None,
    key_tokens: Annotated[
        int | None, typer.Option(min=0, max=5, help="How many tokens of the key become folders below the date; 0.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more; 10.")] = None,
    allow_loss: Annotated[
        bool | None, typer.Option("--allow-loss", help="Go on when messages were purged before they were archived.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Archive nothing: check that archive and log hold everything.")
    ] = False,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Archive a stream to Parquet files by date, and keep it from letting go of what is not archived.

    Example: postbus pipeline run archive orders --to /lake
    """
    if verify:
        _verify(stream, master, remote)
        return
    given = {"to": to, "batch": batch, "key_tokens": key_tokens, "every": every, "allow_loss": allow_loss}
    values = _chosen(given, options)
    with _spark(stream, master, remote) as (spark, database):
        from postbus.pipelines import ArchiveOptions, archive_stream, progress

        chosen = _merged(ArchiveOptions, stream, values)
        count = archive_stream(database, chosen, spark=spark, continuous=continuous, show=progress.for_this_terminal())
    output.emit_number(count, f"archived {count:,} messages of {stream}", name="archived")


@run_app.command("replay")
def replay(
    stream: StreamName,
    into: Annotated[str | None, typer.Option(help="The stream to publish to.")] = None,
    consumer: Annotated[str | None, typer.Option(help="Or the consumer of the stream to deliver to once more.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="A seq, which is included, a time, or a duration ago.")
    ] = None,
    key_pattern: KeyPattern = None,
    rate: Annotated[float | None, typer.Option(help="How many messages per second at most.")] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="How many messages a transaction has at most; 100,000.")
    ] = None,
    again: Annotated[bool | None, typer.Option("--again", help="Once more, although it was replayed before.")] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Replay messages of archive and log into a stream or to one consumer, each once although it is killed and run again.

    Example: postbus pipeline run replay orders --into orders-again --from 2026-01-31T00:00Z --filter 'orders.eu.>'
    """
    given = {
        "into": into,
        "consumer": consumer,
        "start": start,
        "end": end,
        "key_pattern": key_pattern,
        "rate": rate,
        "batch": batch,
        "again": again,
    }
    values = _chosen(given, options)
    with _spark(stream, master, remote) as (spark, database):
        from postbus.pipelines import ReplayOptions, progress, replay_stream

        chosen = _merged(ReplayOptions, stream, values)
        count = replay_stream(database, chosen, spark=spark, show=progress.for_this_terminal())
    text = f"replayed {count:,} messages of {stream}"
    if count == 0 and not again:
        text += "; what was replayed before is not replayed once more without --again"
    output.emit_number(count, text, name="replayed")


@run_app.command("upkeep")
def upkeep(
    stream: StreamName,
    file_bytes: Annotated[str | None, typer.Option(help="About how large files become, such as 128M.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="How long messages stay in the archive, such as 730d; for ever.")
    ] = None,
    grace: Annotated[str | None, typer.Option(help="How long replaced files stay for those who read them; 1d.")] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Look after an archive: compact small files, let go of what is too old, delete what does not count any more.

    Example: postbus pipeline run upkeep orders --keep 730d
    """
    values = _chosen({"file_bytes": file_bytes, "keep": keep, "grace": grace}, options)
    for name in ("keep", "grace"):
        if name in values:
            values[name] = seconds(str(values[name]))
    if "file_bytes" in values:
        values["file_bytes"] = size(str(values["file_bytes"]))
    with _spark(stream, master, remote) as (spark, database):
        from postbus.pipelines import UpkeepOptions, progress, tend_archive

        chosen = _merged(UpkeepOptions, stream, values)
        done = tend_archive(database, chosen, spark=spark, show=progress.for_this_terminal())
    output.emit_one(done)


def _verify(stream: str, master: str | None, remote: str | None) -> None:
    with _spark(stream, master, remote) as (spark, database):
        from postbus.pipelines import verify_archive

        found = verify_archive(database, stream, spark=spark)
    output.emit_one(found)
    if found.problems:
        raise Conflict(f"the archive of {stream} is not whole: {found.problems[0]}")
    output.say(f"archive and log of {stream} hold everything: {found.archived:,} archived, {found.live:,} live")


@contextmanager
def _postgres() -> Iterator[Bus]:
    """The bus, which has to be Postgres itself."""
    if targets.target().is_http:
        raise InvalidInput("pipelines work on Postgres, not on a server", "name it with --url postgresql://…")
    with open_bus() as bus:
        yield bus


@contextmanager
def _spark(stream: str, master: str | None, remote: str | None) -> Iterator[tuple[SparkSession, str]]:
    """Spark, and the database's URL. The database goes first: what is wrong with it is known sooner than Spark starts."""
    with _postgres() as bus:
        bus.stream_info(stream)
        try:
            from postbus.pipelines import sessions
        except ImportError as error:
            raise Error("Spark is not installed", "run: pip install 'postbus[spark]'") from error
        with sessions.started(master, remote) as spark:
            yield spark, bus.url


def _chosen(given: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """Options of a pipeline: those of the flags, then of the file."""
    return {**_from_file(file, set(given)), **{name: value for name, value in given.items() if value is not None}}


def _merged(kind: Callable[..., _Options], stream: str, values: dict[str, Any]) -> _Options:
    """All options of a pipeline, with its own defaults for the rest."""
    try:
        return kind(stream=stream, **values)
    except TypeError as error:
        raise InvalidInput(f"options are missing or wrong: {error}") from error


def _from_file(file: Path | None, known: set[str]) -> dict[str, Any]:
    from difflib import get_close_matches

    if file is None:
        return {}
    import yaml

    try:
        found = yaml.safe_load(file.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise InvalidInput(f"{file} cannot be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{file} holds no options", "write lines such as: to: /lake")
    values = {str(name).replace("-", "_"): value for name, value in found.items()}
    for name in values:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            raise InvalidInput(
                f'{file}: option "{name}" is not known',
                f"did you mean {nearest[0]}?" if nearest else f"there are: {', '.join(sorted(known))}",
            )
    return values
