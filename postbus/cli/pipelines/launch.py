"""Launches pipelines: which Spark, which database, and options from flags and a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postbus.cli.global_options import OUTPUT, TARGET, Commands, current
from postbus.cli.options import open_bus
from postbus.cli.target import find_target
from postbus.model.errors import Error, InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postbus import Bus
    from postbus.pipelines.runtime.progress import Show

_Options = TypeVar("_Options")

# A pipeline uses Postgres directly, so there is no request to print.
run_app = Commands("Run a pipeline.", shared=(*TARGET, *OUTPUT))

Master = Annotated[
    str | None, typer.Option(help="The Spark to use, such as spark://host:7077; without it, this machine.")
]
Remote = Annotated[str | None, typer.Option(help="A server of Spark Connect to use, such as sc://host.")]
MaxBad = Annotated[
    str | None, typer.Option(help="Fail when more rows are put aside than this: a number, or a share such as 1%.")
]
Options = Annotated[
    Path | None,
    typer.Option("--options", help="A YAML file with options by the names of these flags. Flags take precedence."),
]
Continuous = Annotated[
    bool, typer.Option("--continuous/--once", help="Run until Ctrl-C, or end once all present messages are done.")
]


def shown() -> Show:
    """The progress display of a pipeline; silent with --quiet."""
    from postbus.pipelines.runtime import progress

    return progress.Silence() if current().quiet else progress.for_this_terminal()


@contextmanager
def postgres() -> Iterator[Bus]:
    """The bus, which must be in Postgres, not behind a server."""
    if find_target().is_http:
        raise InvalidInput(
            "pipelines need Postgres itself, not a server over HTTP",
            "name it with --url postgresql://…; for the embedded one, --data-dir",
        )
    with open_bus() as bus:
        yield bus


@contextmanager
def started(
    streams: str | Sequence[str], master: str | None, remote: str | None, *, served: Mapping[str, str] | None = None
) -> Iterator[tuple[SparkSession, str]]:
    """Spark, and the database's URL. The database is checked first, since starting Spark takes longer.

    With `served`, its settings, Spark is spoken to over Spark Connect, and on this machine its Python
    knows the database as POSTBUS_URL.
    """
    with postgres() as bus:
        for stream in [streams] if isinstance(streams, str) else streams:
            bus.stream_info(stream)
        try:
            from postbus.pipelines.runtime import spark_session
        except ImportError as error:
            raise Error("Spark is not installed", "run: pip install 'postbus[spark]'") from error
        if served is None:
            with spark_session.started(master, remote) as spark:
                yield spark, bus.url
            return
        os.environ["POSTBUS_URL"] = bus.url
        with spark_session.served(master, remote, served) as spark:
            yield spark, bus.url


def collect(given: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The options of a pipeline, from the flags and from the file. Flags take precedence."""
    return {**_from_file(file, set(given)), **{name: value for name, value in given.items() if value is not None}}


def build(kind: Callable[..., _Options], stream: str, values: dict[str, Any]) -> _Options:
    """All options of a pipeline; missing ones have their defaults."""
    try:
        return kind(stream=stream, **values)
    except TypeError as error:
        raise InvalidInput(f"options are missing or wrong: {error}") from error


def prepared(name: str, stream: str, values: dict[str, Any]) -> Any:
    """The options of a pipeline by the name of their class, checked before Spark starts."""
    from importlib import import_module

    try:
        kind = getattr(import_module("postbus.pipelines"), name)
    except ImportError as error:
        raise Error("Spark is not installed", "run: pip install 'postbus[spark]'") from error
    options = build(kind, stream, values)
    options.check()
    return options


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
        raise InvalidInput(f"{file} contains no options", "write lines such as: to: /lake")
    values = {str(name).replace("-", "_"): value for name, value in found.items()}
    for name in values:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            raise InvalidInput(
                f'{file}: option "{name}" is not known',
                f"did you mean {nearest[0]}?" if nearest else f"there are: {', '.join(sorted(known))}",
            )
    return values
