"""Forms for new streams, queues, consumers and groups."""

from __future__ import annotations

from postbus.html.markup import tag
from postbus.model.errors import InvalidInput
from postbus.model.settings import ConsumerSettings, StreamSettings
from postbus.operations import consumers, groups, streams
from postbus.operations.call import Call
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, choice, field, form
from postbus.server.console.parts import card
from postbus.server.console.positions import position_of
from postbus.server.console.setting_fields import parsed, setting_fields
from postbus.server.console.visit import Page, Visit
from postbus.server.problems import Problem

_NAMES = "1 to 63 letters, digits, “_” or “-”"


async def show_stream(visit: Visit) -> Page:
    """The form for a stream."""
    body = form(
        visit,
        field("name", "Name", help=_NAMES, required=True, autofocus=""),
        setting_fields(StreamSettings, {"partitions": 8}),
        act="create",
        submit=button("Create the stream", primary=True),
    )
    hint = tag(
        "p",
        "All settings can be changed later, except for the type of the data and one message per key.",
        class_="soft",
    )
    return Page("New stream", card(hint, body), crumbs=(("Streams", visit.to("streams")),), tab="streams")


async def add_stream(visit: Visit) -> Act:
    """Create the stream that the form describes."""
    name = _name(visit)
    given, _ = parsed(StreamSettings, visit.form, {})
    call = streams.create(name, given, exist_ok=False)
    python = f"bus.create_stream({', '.join(filter(None, (repr(name), arguments(**given))))})"
    return Act(call, python, lambda _: f"stream {name} was created", visit.to("streams", name), name)


async def show_consumer(visit: Visit) -> Page:
    """The form for a consumer or a group."""
    visit.demand("manage", visit.stream)
    body = form(
        visit,
        field("name", "Name", help=_NAMES, required=True, autofocus=""),
        choice(
            "kind", "Kind", (("consumer", "consumer: an ack for each message"), ("group", "group: read by position"))
        ),
        choice(
            "to", "Start at", (("earliest", "earliest"), ("latest", "latest"), ("seq", "a seq"), ("time", "a time"))
        ),
        field("at", "which seq or time", placeholder="1234, 10m or 2026-01-31 12:00"),
        setting_fields(ConsumerSettings, {}),
        act="create",
        submit=button("Create", primary=True),
    )
    hint = tag(
        "p", "A consumer costs publishers nothing, and needs no backfill: it starts at a position.", class_="soft"
    )
    crumbs = (("Streams", visit.to("streams")), (visit.stream, visit.to("streams", visit.stream)))
    return Page("New consumer", card(hint, body), crumbs=crumbs, tab="streams")


async def add_consumer(visit: Visit) -> Act:
    """Create the consumer or group that the form describes."""
    stream, name = visit.stream, _name(visit)
    start, seq, moment = position_of(visit.form)
    given, _ = parsed(ConsumerSettings, visit.form, {})
    position = {"start": start, "from_seq": seq, "from_time": moment}
    call: Call[None]
    if visit.form.get("kind") == "group":
        kept = {name: given[name] for name in ("keep_unread", "expire_after") if name in given}
        if len(kept) < len({key for key in given if key != "order" or given[key] != "key"}):
            raise Problem(
                400, "invalid", "a group takes keep_unread and expire_after only", hint="clear the other settings"
            )
        call = groups.create(
            stream,
            name,
            keep_unread=bool(given.get("keep_unread")),
            expire_after=given.get("expire_after"),
            start=start,
            from_seq=seq,
            from_time=moment,
            exist_ok=False,
        )
        python = f"bus.create_group({stream!r}, {name!r}, {arguments(**position, **kept)})"
    else:
        if given.get("order") == "key":
            # The default: an example is easier to read without it.
            del given["order"]
        call = consumers.create(stream, name, given, start=start, from_seq=seq, from_time=moment, exist_ok=False)
        python = f"bus.create_consumer({stream!r}, {name!r}, {arguments(**position, **given)})"
    return Act(call, python, lambda _: f"{name} was created", visit.to("streams", stream, "consumers", name), stream)


def _name(visit: Visit) -> str:
    name = visit.form.get("name", "").strip()
    if not name:
        raise InvalidInput("a name is missing", f"it is {_NAMES}")
    return name
