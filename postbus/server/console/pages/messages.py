"""Messages of a stream: searched page by page, one with what became of it, and as a file."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from postbus.codec import content
from postbus.html.markup import Html, join, tag
from postbus.model.message import Message
from postbus.model.message import Page as MessagePage
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.operations import messages as operations
from postbus.operations.call import Call
from postbus.server.console import fate
from postbus.server.console.forms import button, choice, field
from postbus.server.console.parts import Column, ago, card, facts, heading, link, moment, table
from postbus.server.console.positions import time_of
from postbus.server.console.stored import as_stored, in_list, text_of, whole
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Download, Page, Visit, whole_number
from postbus.server.problems import Problem

_PAGE: Final = 50
_MOST_DOWNLOADED: Final = 10_000
# A page with a filter by header or path looks at so many messages at most.
_MOST_LOOKED_AT: Final = 5_000
_STEP: Final = 1_000
_is_path: Final = re.compile(r"\$(\.\w+|\[\d+\])+").fullmatch


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for.

    Attributes:
        key_pattern: Keys that match, or one key.
        from_seq: The seq to begin at.
        from_time: The time to begin at.
        to_time: Messages published before this time.
        header: A header, as "name" or "name=value".
        path: A place in the JSON, as "$.a.b" or "$.a.b=value".
        newest_first: From the end.
        resume: Where the page before ended.
    """

    key_pattern: str | None
    from_seq: int | None
    from_time: datetime | None
    to_time: datetime | None
    header: str
    path: str
    newest_first: bool
    resume: str | None

    @classmethod
    def of(cls, visit: Visit) -> Search:
        """From the parameters of the address.

        Raises:
            Problem: 400.
        """
        query = visit.query
        seq = query.get("seq", "").strip()
        path = query.get("path", "").strip()
        if path and not _is_path(path.partition("=")[0]):
            raise Problem(
                400,
                "invalid",
                f'"{path}" is not a place in the data',
                hint="write it as $.customer.id or $.items[0].sku=7",
            )
        return cls(
            key_pattern=query.get("key", "").strip() or None,
            from_seq=whole_number(seq, "seq", least=1) if seq else None,
            from_time=time_of(query.get("since", ""), "since"),
            to_time=time_of(query.get("until", ""), "until"),
            header=query.get("header", "").strip(),
            path=path,
            newest_first=query.get("order", "new") == "new" and not seq,
            resume=query.get("resume") or None,
        )

    def call(self, stream: str, size: int, resume: str | None) -> Call[MessagePage]:
        return as_stored(
            operations.read(
                stream,
                from_seq=self.from_seq,
                to_seq=None,
                from_time=self.from_time,
                to_time=self.to_time,
                key=None,
                key_pattern=self.key_pattern,
                partition=None,
                max_messages=size,
                backwards=self.newest_first,
                resume=resume,
            )
        )

    def matches(self, message: Message) -> bool:
        """Whether it has the header and the value that are searched for."""
        name, is_given, value = self.header.partition("=")
        if name and (name not in (message.headers or {}) or (is_given and (message.headers or {})[name] != value)):
            return False
        path, is_given, value = self.path.partition("=")
        return not path or _has(message.data, path, value if is_given else None)


async def show_all(visit: Visit) -> Page | Download:
    """Messages that match, newest first unless asked otherwise."""
    stream = visit.stream
    visit.demand("consume", stream)
    wanted = Search.of(visit)
    kind = visit.query.get("as", "")
    found, resume, looked_at = await _find(visit, wanted, _MOST_DOWNLOADED if kind else _PAGE)
    if kind == "jsonl":
        return Download(f"{stream}.jsonl", "application/x-ndjson", _json_lines(found))
    if kind == "csv":
        return Download(f"{stream}.csv", "text/csv; charset=utf-8", _csv(found))
    is_live = wanted.newest_first and wanted.resume is None
    listed = card(
        table(_columns(visit), found, id="messages", empty=_empty(wanted, resume), row_id=lambda each: f"m{each.seq}"),
        _onward(visit, found, resume, looked_at),
        id="found",
        live=is_live,
    )
    return Page(
        "Messages",
        join(tabs(visit, stream, "messages"), card(_form(visit)), listed, _downloads(visit) if found else None),
        crumbs=(("Streams", visit.to("streams")), (stream, visit.to("streams", stream))),
        tab="streams",
    )


async def show(visit: Visit) -> Page:
    """One message, and what became of it for each consumer."""
    stream = visit.stream
    visit.demand("consume", stream)
    seq = whole_number(visit.request.parameters["seq"], "seq", least=1)
    info = await visit.bus.stream_info(stream)
    call = operations.read(
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
    page = await visit.run(as_stored(call))
    message = page.messages[0] if page.messages else None
    fates = await fate.of_message(visit, stream, seq, message)
    if message is None and not fates:
        hint = (
            f"seqs go up to {info.last_seq:,}. Some have no message: their publish was rolled back, or retention has "
            "removed them."
        )
        raise Problem(404, "not_found", f"{stream} has no message with seq {seq:,}", hint=hint)
    around = tag(
        "nav",
        link("← older", visit.to("streams", stream, "messages", seq=max(1, seq - 1))) if seq > 1 else None,
        link("the stream from here on", visit.to("streams", stream, "messages", seq=seq)),
        link("publish again …", visit.to("streams", stream, "publish", again=seq))
        if visit.may("publish", stream) and message
        else None,
        class_="pages",
    )
    to_all = visit.here(all=1)
    body = [
        card(
            facts(
                (
                    (
                        "key",
                        tag("code", message.key) if message.key is not None else tag("span", "none", class_="soft"),
                    ),
                    ("published", join(moment(message.published_at), ", ", ago(message.published_at), " ago")),
                    ("partition", message.partition),
                    *((("priority", message.priority),) if message.priority != DEFAULT_PRIORITY else ()),
                    *((f"header {name}", tag("code", value)) for name, value in (message.headers or {}).items()),
                )
            ),
            whole(message.data, info.data_type, all_of_it="all" in visit.query, to_all=to_all),
            around,
        )
        if message
        else card(tag("p", "The message is gone from the stream. What consumers still have of it:")),
        card(heading("What became of it"), fate.shown(visit, stream, fates), id="fate", live=True),
    ]
    return Page(
        f"{stream}#{seq}",
        join(*body),
        crumbs=(
            ("Streams", visit.to("streams")),
            (stream, visit.to("streams", stream)),
            ("Messages", visit.to("streams", stream, "messages")),
        ),
        tab="streams",
    )


async def _find(visit: Visit, wanted: Search, size: int) -> tuple[list[Message], str | None, int]:
    """Messages, where to go on, and how many were looked at. The work is bounded."""
    if not wanted.header and not wanted.path:
        page = await visit.run(wanted.call(visit.stream, size, wanted.resume))
        return list(page.messages), await _onward_from(visit, wanted, page, size), len(page.messages)
    found: list[Message] = []
    resume, looked_at = wanted.resume, 0
    while looked_at < _MOST_LOOKED_AT:
        # So that a page ends with a message that was looked at, and the next begins behind it.
        page = await visit.run(wanted.call(visit.stream, min(_STEP, max(1, size - len(found))), resume))
        found += filter(wanted.matches, page.messages)
        looked_at += max(1, len(page.messages))
        resume = await _onward_from(visit, wanted, page, size)
        if resume is None or len(found) >= size:
            break
    return found, resume, looked_at


async def _onward_from(visit: Visit, wanted: Search, page: MessagePage, size: int) -> str | None:
    """Where to go on behind a page; None at the end. The last page has a token too, and behind it there is nothing."""
    if page.resume is None or len(page.messages) >= size:
        return page.resume
    following = await visit.run(wanted.call(visit.stream, 1, page.resume))
    return page.resume if following.messages or following.resume is not None else None


def _has(data: object, path: str, value: str | None) -> bool:
    """Whether there is something at a place in the JSON; with a value, whether it is that."""
    if not isinstance(data, str | bytes):
        return False
    try:
        place = content.decode_json(data)
    except ValueError:
        return False
    for step in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        name, index = step
        try:
            place = place[name] if name else place[int(index)]
        except (KeyError, IndexError, TypeError):
            return False
    return value is None or text_of(place if isinstance(place, str) else content.encode_json(place)) == value


def _columns(visit: Visit) -> list[Column[Message]]:
    return [
        Column(
            "seq",
            lambda each: link(f"{each.seq:,}", visit.to("streams", visit.stream, "messages", each.seq)),
            is_number=True,
        ),
        Column("published", lambda each: ago(each.published_at)),
        Column("key", lambda each: tag("code", each.key) if each.key is not None else ""),
        Column("data", lambda each: in_list(each.data)),
        Column(
            "headers",
            lambda each: ", ".join(f"{name}={value}" for name, value in (each.headers or {}).items())[:80],
            is_extra=True,
        ),
    ]


def _form(visit: Visit) -> Html:
    query = visit.query
    extra = any(query.get(name) for name in ("seq", "since", "until", "header", "path"))
    return tag(
        "form",
        tag(
            "div",
            field(
                "key",
                "Key",
                query.get("key", ""),
                placeholder="orders.ada.1, orders.*.paid or orders.>",
                data_search="",
            ),
            button("Search", primary=True),
            class_="inline",
        ),
        tag(
            "details",
            tag("summary", "by seq, time, header, content"),
            tag(
                "div",
                field("seq", "From seq", query.get("seq", ""), inputmode="numeric"),
                field("since", "Published since", query.get("since", ""), placeholder="10m, or 2026-01-31 12:00"),
                field("until", "and before", query.get("until", "")),
                field("header", "Header", query.get("header", ""), placeholder="trace or trace=4bf9"),
                field("path", "Place in the JSON", query.get("path", ""), placeholder="$.customer.id=7"),
                choice("order", "Order", (("new", "newest first"), ("old", "oldest first")), query.get("order", "new")),
                class_="grid",
            ),
            open="" if extra or query.get("order", "new") != "new" else None,
        ),
        action=visit.to("streams", visit.stream, "messages"),
    )


def _empty(wanted: Search, resume: str | None) -> str:
    if resume is not None:
        return "Nothing that matches in this part of the stream; it goes on."
    if wanted.key_pattern or wanted.header or wanted.path or wanted.from_time or wanted.from_seq:
        return "Nothing matches."
    return "The stream has no messages yet."


def _onward(visit: Visit, found: list[Message], resume: str | None, looked_at: int) -> Html | None:
    if resume is None:
        return tag("p", "This is the end of what there is.", class_="soft") if visit.query.get("resume") else None
    last = found[-1] if found else None
    where = "" if last is None else f"searched up to seq {last.seq:,}"
    if looked_at > len(found):
        where = f"looked at {looked_at:,} messages" + (f", the last hit at seq {last.seq:,}" if last else "")
    return tag(
        "nav", tag("span", where, class_="soft"), link("go on →", visit.here(resume=resume), rel="next"), class_="pages"
    )


def _downloads(visit: Visit) -> Html:
    words = tag("span", f"Up to {_MOST_DOWNLOADED:,} of these as a file: ", class_="soft")
    lines = tag("a", "JSON lines", href=visit.here(**{"as": "jsonl"}), download="")
    table_ = tag("a", "CSV", href=visit.here(**{"as": "csv"}), download="")
    return tag("p", words, lines, " · ", table_)


def _json_lines(found: list[Message]) -> bytes:
    """A line for each message. JSON data goes in as it is stored."""
    lines = []
    for each in found:
        about = {"seq": each.seq, "key": each.key, "headers": each.headers, "published_at": each.published_at}
        head = content.encode_json({**about, "published_at": each.published_at and each.published_at.isoformat()})
        data = (
            each.data.replace("\n", " ").encode()
            if isinstance(each.data, str)
            else content.encode_json(text_of(each.data))
        )
        if isinstance(each.data, str) and not _is_json(each.data):
            data = content.encode_json(each.data)
        lines.append(head[:-1] + b',"data":' + data + b"}\n")
    return b"".join(lines)


def _is_json(text: str) -> bool:
    try:
        content.decode_json(text)
    except ValueError:
        return False
    return True


def _csv(found: list[Message]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("seq", "published_at", "key", "data", "headers"))
    for each in found:
        headers = content.encode_json(each.headers).decode() if each.headers else ""
        published = each.published_at.isoformat() if each.published_at else ""
        writer.writerow(
            (each.seq, published, _no_formula(each.key or ""), _no_formula(text_of(each.data)), _no_formula(headers))
        )
    return out.getvalue().encode(errors="replace")


def _no_formula(text: str) -> str:
    """Text that a spreadsheet does not run: messages are strangers' text."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_json(text) else text
