"""`postbus source webhook`: requests of others that become messages."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from postbus.cli import options, output
from postbus.cli.consumer_settings import asked
from postbus.cli.global_options import Commands, current
from postbus.cli.options import Yes, complete_stream, confirm, open_bus, size
from postbus.model.errors import InvalidInput
from postbus.model.webhook import WEBHOOK_KINDS, WebhookKind, WebhookSourceInfo

app = Commands("Webhook sources: requests to /api/webhook/NAME of a server become messages.")
MaybeNewName = Annotated[str | None, typer.Argument(help="Its name: letters, digits, _ and -.")]
MaybeStreamName = Annotated[str | None, typer.Argument(help="The stream's name.", autocompletion=complete_stream)]
Name = Annotated[str, typer.Argument(help="The source's name.")]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        help="What requests are signed with; “-” reads it from stdin, so that no history has it. May be repeated."
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="NAME=VALUE: what the kind needs besides, such as header=X-Signature; may be repeated."
    ),
]
Key = Annotated[str | None, typer.Option(help="What keys are made from, such as 'shop.{json:/customer}.{id}'.")]
IdFrom = Annotated[
    str | None, typer.Option(help="Where the id of an event is: header:NAME, json:/POINTER or sha256 (of the body).")
]
KeepHeader = Annotated[list[str] | None, typer.Option(help="A header that goes along; may be repeated.")]
MaxBody = Annotated[str | None, typer.Option("--max-body", help="The largest body, such as 1M.")]
MaxRate = Annotated[float | None, typer.Option(help="Requests per second that each process accepts.")]
# Others let you choose it, and then one is made.
_GIVEN_BY_SENDER: Final = ("stripe", "shopify", "slack", "basic")


@app.command("add")
def add(
    name: MaybeNewName = None,
    stream: MaybeStreamName = None,
    kind: Annotated[str | None, typer.Option(help=f"Who sends: {', '.join(WEBHOOK_KINDS)}.")] = None,
    secret: Secret = None,
    option: Option = None,
    key: Key = None,
    id_from: IdFrom = None,
    keep_header: KeepHeader = None,
    dedup: Annotated[
        bool, typer.Option("--dedup/--no-dedup", help="Publish an event once within the stream's dedup window.")
    ] = True,
    max_body: MaxBody = None,
    max_rate: MaxRate = None,
) -> None:
    """Let requests to /api/webhook/NAME become messages, once they are verified. On a terminal it asks for what is missing.

    Example: postbus source webhook add stripe payments --kind stripe --secret -
    """
    name, stream, chosen = _asked(name, stream, kind)
    secrets = _secrets(secret)
    if not secrets and chosen in _GIVEN_BY_SENDER and options.can_ask():
        secrets = [typer.prompt("Secret that the sender shows", hide_input=True, err=True)]
    more: dict[str, Any] = {} if max_body is None else {"max_body_bytes": size(max_body)}
    with open_bus() as bus:
        made = bus.webhook_sources.create(
            name,
            stream,
            kind=chosen,
            secrets=secrets,
            options=_options(option),
            key=key,
            id_from=id_from,
            keep_headers=keep_header or (),
            dedup=dedup,
            max_rate=max_rate,
            **more,
        )
    if output.as_json():
        output.emit_json({"name": name, "path": f"/api/webhook/{name}", "secret": made})
        return
    output.say(f"created webhook source {name}; servers receive at: /api/webhook/{name}")
    if made is not None:
        output.say("give this secret to the sender; it is shown this once:")
        typer.echo(made)


@app.command("ls")
def ls() -> None:
    """List webhook sources.

    Example: postbus source webhook ls
    """
    with open_bus() as bus:
        found = bus.webhook_sources.list_all()
    output.emit(
        found,
        ("name", "stream", "kind", "path", "paused", "last_refused"),
        empty="no webhook sources yet; add one: postbus source webhook add NAME STREAM --kind github",
        shown=_shown,
    )


@app.command("info")
def info(name: Name) -> None:
    """Show a webhook source, and the last requests that it refused.

    Example: postbus source webhook info stripe
    """
    with open_bus() as bus:
        found = bus.webhook_sources.info(name)
    if output.as_json():
        output.emit_json({**asdict(found), "path": f"/api/webhook/{name}"})
        return
    output.emit_one({"path": f"/api/webhook/{name}", **asdict(found)}, leave_out=("last_refusals",))
    for each in found.last_refusals:
        typer.echo(f"refused  {output.cell(each.refused_at)}  {each.status}  {each.reason}  ({each.refused_count})")


@app.command("edit")
def edit(
    name: Name,
    stream: Annotated[str | None, typer.Option(help="Another stream to publish to.")] = None,
    secret: Secret = None,
    option: Option = None,
    key: Key = None,
    id_from: IdFrom = None,
    keep_header: KeepHeader = None,
    dedup: Annotated[
        bool | None, typer.Option("--dedup/--no-dedup", help="Publish an event once within the stream's dedup window.")
    ] = None,
    max_body: MaxBody = None,
    max_rate: Annotated[
        float | None, typer.Option(help="Requests per second that each process accepts; 0 sets no limit.")
    ] = None,
    paused: Annotated[
        bool | None, typer.Option("--pause/--resume", help="Refuse requests with 503, so that senders repeat them.")
    ] = None,
) -> None:
    """Change a webhook source. What is left out stays as it is; secrets, options and headers replace the ones there are.

    Example: postbus source webhook edit stripe --secret - --max-rate 100
    """
    with open_bus() as bus:
        bus.webhook_sources.alter(
            name,
            stream=stream,
            secrets=_secrets(secret) or None,
            options=None if option is None else _options(option),
            key=key,
            id_from=id_from,
            keep_headers=keep_header,
            dedup=dedup,
            max_body_bytes=size(max_body),
            max_rate=max_rate,
            paused=paused,
        )
    output.done(f"changed webhook source {name}", name=name)


@app.command("rm")
def rm(name: Name, yes: Yes = False) -> None:
    """Remove a webhook source. What it has published stays.

    Example: postbus source webhook rm stripe
    """
    confirm(f"Remove webhook source {name}, and its secrets?", yes=yes)
    with open_bus() as bus:
        bus.webhook_sources.drop(name)
    output.done(f"removed webhook source {name}", name=name)


def _shown(found: WebhookSourceInfo) -> dict[str, Any]:
    last = found.last_refusals[0] if found.last_refusals else None
    return {
        "name": found.name,
        "stream": found.stream,
        "kind": found.kind,
        "path": f"/api/webhook/{found.name}",
        "paused": found.paused,
        "last_refused": None if last is None else f"{output.cell(last.refused_at)}: {last.reason}",
    }


def _asked(name: str | None, stream: str | None, kind: str | None) -> tuple[str, str, WebhookKind]:
    """The name, stream and kind of a new source: asked for, on a terminal, where they were not given.

    Raises:
        InvalidInput: One is missing, and there is no terminal to ask on; or the kind is not known.
    """
    given = {"name of the source": name, "stream": stream, "kind": kind}
    missing = [what for what, value in given.items() if value is None]
    if missing and (current().as_curl or not options.can_ask()):
        raise InvalidInput(f"the {missing[0]} is missing", "postbus source webhook add github events --kind github")
    if name is None:
        name = asked("Name, the end of its URL", _given, default=None)
    if stream is None:
        stream = asked("Stream", _given, default=None)
    if kind is None:
        return name, stream, asked(f"Who sends ({', '.join(WEBHOOK_KINDS)})", _kind, default=None)
    return name, stream, _kind(kind)


def _given(answer: str) -> str:
    if not answer:
        raise InvalidInput("it is needed")
    return answer


def _kind(text: str) -> WebhookKind:
    if text not in WEBHOOK_KINDS:
        raise InvalidInput(f'"{text}" is not a kind of webhook source', f"there are: {', '.join(WEBHOOK_KINDS)}")
    return text


def _secrets(given: list[str] | None) -> list[str]:
    return [sys.stdin.readline().rstrip("\n") if each == "-" else each for each in given or ()]


def _options(given: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise InvalidInput(f'"{each}" is not NAME=VALUE')
        found[name] = json.loads(value) if name == "tolerance" and value.isdigit() else value
    return found
