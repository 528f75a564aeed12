"""Which bus a command uses. Options take precedence over the environment, and the environment over the stored context.

The order is: --url, --context, --data-dir; POSTBUS_URL, POSTBUS_CONTEXT, POSTBUS_DATA_DIR; the context in use; the embedded
Postgres.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from postbus.cli import contexts, output
from postbus.cli.contexts import Context, Contexts
from postbus.cli.global_options import GlobalOptions, current
from postbus.model.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bus to work on.

    Attributes:
        url: Where it is; None for the embedded Postgres.
        token: For a server.
        data_dir: Where the embedded Postgres lives; None for its usual place.
        chosen_by: What decided it, in words.
    """

    url: str | None = None
    token: str | None = None
    data_dir: Path | None = None
    chosen_by: str

    @property
    def is_http(self) -> bool:
        return self.url is not None and self.url.startswith(("http://", "https://"))


def find_target(options: GlobalOptions | None = None) -> Target:
    """The bus that the options, the environment and the stored contexts choose.

    Raises:
        InvalidInput: Two options contradict each other, or a value is missing.
        NotFound: There is no such context.
    """
    found = _target(options or current())
    if current().as_curl and not found.is_http:
        raise InvalidInput(
            "--as-curl prints requests to a server, but the target is not a server", "name a server with --url http://…"
        )
    return found


def target_to_serve() -> Target:
    """The bus for `postbus up`: the embedded Postgres if the context in use is a server, such as the one about to start."""
    given = _given_target(current())
    stored = None if given is not None else _stored_target()
    if stored is not None and stored.is_http:
        output.say(f"{stored.chosen_by} is a server; this one uses the embedded Postgres")
        return Target(chosen_by="default")
    return given or stored or Target(chosen_by="default")


def _target(options: GlobalOptions) -> Target:
    return _given_target(options) or _stored_target() or Target(chosen_by="default")


def _stored_target() -> Target | None:
    stored = stored_contexts()
    return None if stored.in_use is None else _by_context(stored.in_use, "the context in use")


def _given_target(options: GlobalOptions) -> Target | None:
    """What the options or the environment name."""
    if sum(each is not None for each in (options.context, options.url, options.data_dir)) > 1:
        raise InvalidInput("--context, --url and --data-dir exclude each other", "give one of them")
    environment = os.environ
    if options.url:
        return _by_url(options.url, "--url")
    if options.context:
        return _by_context(options.context, "--context")
    if options.data_dir:
        return Target(data_dir=options.data_dir, chosen_by="--data-dir")
    if environment.get("POSTBUS_URL"):
        return _by_url(environment["POSTBUS_URL"], "POSTBUS_URL")
    if environment.get("POSTBUS_CONTEXT"):
        return _by_context(environment["POSTBUS_CONTEXT"], "POSTBUS_CONTEXT")
    if environment.get("POSTBUS_DATA_DIR"):
        return Target(data_dir=Path(environment["POSTBUS_DATA_DIR"]), chosen_by="POSTBUS_DATA_DIR")
    return None


def stored_contexts() -> Contexts:
    return Contexts(contexts.path(os.environ))


def _by_url(url: str, chosen_by: str) -> Target:
    found = Context(url=url).resolved()
    token = os.environ.get("POSTBUS_TOKEN") or None
    return Target(url=found.url, token=token if found.is_http else None, chosen_by=chosen_by)


def _by_context(name: str, chosen_by: str) -> Target:
    found = stored_contexts().get(name).resolved()
    return Target(url=found.url, token=found.token, chosen_by=f"{chosen_by} ({name})")


@contextmanager
def postgres_url(*, for_what: str, install: bool = True) -> Iterator[str]:
    """The URL of the Postgres that a command uses, which may be the embedded one.

    Raises:
        InvalidInput: The target is a server.
    """
    from postbus.db import migrations
    from postbus.db.embedded import EmbeddedServer

    chosen = find_target()
    if chosen.is_http:
        raise InvalidInput(
            f"{for_what} needs Postgres itself, not a server over HTTP", "name it with --url postgresql://…"
        )
    if chosen.url is not None:
        yield chosen.url
        return
    with EmbeddedServer(chosen.data_dir) as server:
        if install:
            migrations.migrate(server.url)
        yield server.url
