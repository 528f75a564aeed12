"""Publishing a message, and publishing one again."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from postbus.codec import answers, content, fields
from postbus.codec.content import NotEncodable
from postbus.html.markup import join, tag
from postbus.model.amounts import seconds_of
from postbus.model.message import Message, Seq
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.model.stream import DataType
from postbus.operations import messages as operations
from postbus.operations.call import Call, Http, Sql, first
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, choice, field, form, text_area
from postbus.server.console.parts import card
from postbus.server.console.stored import as_stored, text_of
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

# Headers that belong to the first publish of a message.
_OF_THE_FIRST = ("traceparent", "tracestate", "postbus-schedule", "postbus-occurrence")


async def show(visit: Visit) -> Page:
    """The form, perhaps filled with a message that was published before."""
    stream = visit.stream
    visit.demand("publish", stream)
    info = await visit.bus.stream_info(stream)
    key, data, headers = "", "{}" if info.data_type == "json" else "", ""
    priority = str(DEFAULT_PRIORITY)
    if "again" in visit.query:
        visit.demand("consume", stream)
        seq = whole_number(visit.query["again"], "seq", least=1)
        page = await visit.run(as_stored(_one(stream, seq)))
        if page.messages:
            found = page.messages[0]
            key, data, priority = found.key or "", text_of(found.data), str(found.priority)
            headers = "\n".join(
                f"{name}: {value}" for name, value in (found.headers or {}).items() if name not in _OF_THE_FIRST
            )
    if info.data_type == "bytes":
        data_field = text_area("data", "Data, as text in UTF-8", data, rows=10)
    else:
        data_field = text_area("data", "Data" + (", JSON" if info.data_type == "json" else ""), data, rows=10)
    body = form(
        visit,
        field("key", "Key", key, placeholder="orders.ada.1", help="Messages of one key are in order. Empty: none."),
        data_field,
        tag(
            "details",
            tag("summary", "priority, headers, delay, time to live, dedup id"),
            choice("priority", "Priority", tuple(map(str, range(9, -1, -1))), priority, help="9 goes first."),
            text_area("headers", "Headers, one on a line", headers, rows=3, help="name: value"),
            field("delay", "Delay", placeholder="10m"),
            field("ttl", "Time to live", placeholder="1d"),
            field(
                "dedup_id",
                "Dedup id",
                help="Within the stream's dedup_window, a message with the same id is not published again.",
            )
            if info.dedup_window is not None
            else None,
            open="" if headers else None,
        ),
        act="publish",
        submit=button("Publish", primary=True),
        to=visit.to("streams", stream, "publish"),
    )
    crumbs = (("Streams", visit.to("streams")), (stream, visit.to("streams", stream)))
    return Page("Publish", join(tabs(visit, stream, "publish"), card(body)), crumbs=crumbs, tab="streams")


async def publish(visit: Visit) -> Act:
    """Publish what the form holds."""
    stream, given = visit.stream, visit.form
    visit.demand("publish", stream)
    info = await visit.bus.stream_info(stream)
    message = Message(
        key=given.get("key", "").strip() or None,
        data=data_of(given.get("data", ""), info.data_type),
        headers=headers_of(given.get("headers", "")) or None,
        dedup_id=given.get("dedup_id", "").strip() or None,
        priority=whole_number(given.get("priority") or DEFAULT_PRIORITY, "priority"),
    )
    delay, ttl = (_length(given.get(name, "")) for name in ("delay", "ttl"))
    call = _call(stream, message, info.data_type, given.get("data", ""), delay, ttl)
    shown = arguments(
        key=message.key,
        data=message.data,
        headers=message.headers,
        dedup_id=message.dedup_id,
        priority=None if message.priority == DEFAULT_PRIORITY else message.priority,
        delay=_short(delay),
        ttl=_short(ttl),
    )

    def said(seq: Seq) -> str:
        if delay is not None:
            return f"scheduled, as number {seq}"
        return f"this is a duplicate of seq {seq:,}" if seq.is_duplicate else f"published as seq {seq:,}"

    return Act(call, f"bus.publish({stream!r}, {shown})", said, visit.to("streams", stream, "messages"), stream)


def _one(stream: str, seq: int) -> Any:
    return operations.read(
        stream,
        from_seq=seq,
        to_seq=seq,
        from_time=None,
        to_time=None,
        key=None,
        key_pattern=None,
        partition=None,
        max_messages=1,
        backwards=False,
        resume=None,
    )


def _call(
    stream: str, message: Message, data_type: DataType, text: str, delay: timedelta | None, ttl: timedelta | None
) -> Call[Seq]:
    """A publish as one statement, with JSON as it was typed, so that no digit of a number changes."""
    content_ = message.data if data_type == "bytes" else None
    headers = content.encode_headers(message.headers)
    statement = (
        "select postbus.publish($1, key => $2, data => $3::text, headers => $4::jsonb, bytes => $5, dedup_id => $6, "
        "deliver_at => clock_timestamp() + $7::interval, ttl => $8, priority => $9)"
    )
    values = (
        stream,
        message.key,
        None if data_type == "bytes" else text,
        None if headers is None else headers.decode(),
        content_,
        message.dedup_id,
        delay,
        ttl,
        message.priority,
    )
    millis = {
        name: None if each is None else round(each.total_seconds() * 1000)
        for name, each in (("delay_ms", delay), ("ttl_ms", ttl))
    }
    body = json.loads(fields.new_messages([message], **millis))
    return Call(
        Sql(statement, values, lambda rows: Seq.answered(int(first(rows)))),
        Http(operations.PUBLISH, (stream,), lambda answer: answers.numbers(answer.data)[0], body=body),
    )


def data_of(text: str, data_type: DataType) -> Any:
    if data_type == "bytes":
        return text.encode()
    if data_type == "text":
        return text
    try:
        return content.decode_json(text)
    except (ValueError, NotEncodable) as error:
        hint = 'JSON has its strings and names in double quotes, as in {"quantity": 4}'
        raise Problem(400, "invalid", f"the data is not JSON: {error}", hint=hint) from None


def headers_of(text: str) -> dict[str, str]:
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Problem(
                400, "invalid", f'"{line[:80]}" is not a header', hint="write one on each line, as name: value"
            )
        found[name.strip()] = value.strip()
    return found


def _length(text: str) -> timedelta | None:
    return timedelta(seconds=seconds_of(text.strip())) if text.strip() else None


def _short(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
