"""Dead letters: those of all consumers, and those of one by reason, with redrive and discard."""

from __future__ import annotations

from collections import Counter
from typing import Final

from postbus.html.markup import Html, join, tag
from postbus.model.consumer import DeadLetter
from postbus.model.overview import ConsumerOverview
from postbus.model.wording import counted
from postbus.operations import dead_letters as operations
from postbus.operations import tasks
from postbus.operations.call import Call
from postbus.server.console import task_card
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, code_button, field, form, hidden
from postbus.server.console.pages import overview
from postbus.server.console.parts import Column, ago, badge, card, heading, link, number, table
from postbus.server.console.stored import as_stored, in_list
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_PAGE: Final = 50
# Reasons are grouped over so many dead letters.
_GROUPED: Final = 2_000
_MOST_SHOWN_REASON: Final = 200


async def show_all(visit: Visit) -> Page:
    """Consumers that have dead letters."""
    found = await overview.visible(visit)
    rows = sorted((each for each in found.consumers if each.dead), key=lambda each: -each.dead)
    columns: list[Column[ConsumerOverview]] = [
        Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))),
        Column("consumer", lambda each: link(each.name, _path(visit, each.stream, each.name))),
        Column("dead letters", lambda each: number(each.dead, "bad"), is_number=True),
        Column("backlog", lambda each: number(each.backlog), is_number=True),
    ]
    empty = "There are no dead letters: no message has run out of deliveries."
    return Page(
        "Dead letters", card(table(columns, rows, id="dead-table", empty=empty), id="dead", live=True), tab="dead"
    )


async def show(visit: Visit) -> Page:
    """The dead letters of one consumer, oldest first, and their reasons."""
    stream, name = visit.stream, visit.consumer
    visit.demand("consume", stream)
    reason, key = visit.query.get("reason") or None, visit.query.get("key") or None
    after = whole_number(visit.query.get("after", "0"), "after")
    found = await visit.run(as_stored(_list(visit, reason, key, after, _PAGE)))
    sample = await visit.run(as_stored(_list(visit, None, None, 0, _GROUPED)))
    may = visit.may("manage", stream)
    onward = None
    if len(found) == _PAGE:
        onward = tag("nav", link("go on →", visit.here(after=found[-1].seq), rel="next"), class_="pages")
    letters = table(
        _columns(visit, may=may),
        found,
        id="letters",
        empty="No dead letter matches." if reason or key else "There are no dead letters.",
    )
    chosen: Html = join(heading("Messages", _search(visit)), letters, onward)
    if may and found:
        buttons = join(
            tag("button", "Redrive the ticked ones", name="act", value="redrive"),
            tag("button", "Discard the ticked ones", name="act", value="discard", class_="danger"),
            code_button("redrive", "discard"),
        )
        # A form around the table: the boxes in it belong to the form.
        chosen = tag("form", chosen, tag("div", buttons, class_="buttons"), method="post", action=visit.here())
    return Page(
        "Dead letters",
        join(
            card(_reasons(visit, sample, reason), id="reasons"),
            card(chosen, id="list"),
            card(_all_matching(visit, reason, key)) if may and sample else None,
            await task_card.task_card(visit, stream, name),
        ),
        crumbs=(
            ("Streams", visit.to("streams")),
            (stream, visit.to("streams", stream)),
            (name, visit.to("streams", stream, "consumers", name)),
        ),
        tab="dead",
    )


async def change(visit: Visit) -> Act:
    """Redrive or discard dead letters: the ticked ones now, or all that match in the background. Or cancel that."""
    stream, name = visit.stream, visit.consumer
    wanted, here = visit.form.get("act", ""), _path(visit, stream, name)
    if wanted == "cancel-task":
        return task_card.cancel(visit, stream, here)
    if wanted not in ("redrive", "discard"):
        raise Problem(400, "invalid", "this form is not known", hint="reload the page")
    return _matching(visit, wanted, here) if visit.form.get("which") == "matching" else _ticked(visit, wanted, here)


def _ticked(visit: Visit, wanted: str, here: str) -> Act:
    stream, name = visit.stream, visit.consumer
    seqs = [whole_number(each, "seq", least=1) for each in visit.form.get("seq", "").split(",") if each]
    if not seqs:
        raise Problem(400, "invalid", "no dead letter is ticked", hint="tick some, or use the form for all that match")
    python = f"bus.consumer({stream!r}, {name!r}).{wanted}(seqs={seqs})"
    if wanted == "discard":
        call = operations.discard_page(stream, name, seqs=seqs, key_pattern=None, reason_like=None)
        return Act(call, python, lambda done: f"{counted(done, 'dead letter')} discarded", here, stream)
    call = operations.redrive_page(
        stream, name, seqs=seqs, key_pattern=None, reason_like=None, to_stream=None, max_messages=len(seqs)
    )
    return Act(call, python, lambda done: f"{counted(done, 'dead letter')} redriven", here, stream)


def _matching(visit: Visit, wanted: str, here: str) -> Act:
    stream, name, fields = visit.stream, visit.consumer, visit.form
    reason, key = _pattern(fields.get("reason", "")) or None, fields.get("key", "").strip() or None
    rate = whole_number(fields["rate"], "rate", least=1) if fields.get("rate", "").strip() else None
    call = (
        tasks.discard(stream, name, key_pattern=key, reason_like=reason, rate=rate)
        if wanted == "discard"
        else tasks.redrive(stream, name, key_pattern=key, reason_like=reason, to_stream=None, rate=rate)
    )
    given = arguments(key_pattern=key, reason_like=reason, rate=rate)
    python = f"bus.tasks.{wanted}({', '.join(filter(None, (repr(stream), repr(name), given)))})"
    return Act(call, python, lambda task: f"task {task} has begun: {wanted}", here, stream)


def _path(visit: Visit, stream: str, name: str) -> str:
    return visit.to("streams", stream, "consumers", name, "dead")


def _list(visit: Visit, reason: str | None, key: str | None, after: int, size: int) -> Call[list[DeadLetter]]:
    return operations.list_page(
        visit.stream,
        visit.consumer,
        seqs=None,
        key_pattern=key,
        reason_like=None if reason is None else _pattern(reason),
        after_seq=after,
        max_messages=size,
    )


def _pattern(reason: str) -> str:
    """A LIKE pattern for reasons that begin so. What stands in it for other characters is taken as it is."""
    if not reason.strip():
        return ""
    return reason.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


def _reasons(visit: Visit, sample: list[DeadLetter], chosen: str | None) -> Html:
    groups = Counter(each.reason[:_MOST_SHOWN_REASON] for each in sample)
    newest = {each.reason[:_MOST_SHOWN_REASON]: each.died_at for each in sorted(sample, key=lambda each: each.died_at)}
    columns: list[Column[tuple[str, int]]] = [
        Column(
            "reason",
            lambda each: link(
                each[0] or "no reason given",
                visit.here(reason=each[0], after=None),
                aria_current="true" if each[0] == chosen else None,
            ),
        ),
        Column("dead letters", lambda each: number(each[1], "bad"), is_number=True),
        Column("latest", lambda each: ago(newest[each[0]]), is_number=True),
    ]
    note = tag("span", f"of the oldest {_GROUPED:,}", class_="soft") if len(sample) == _GROUPED else None
    clear = link("show all", visit.here(reason=None, after=None)) if chosen else None
    rows = table(columns, groups.most_common(20), id="reason-table", empty="There are no dead letters.")
    return join(heading("By reason", note, clear), rows)


def _search(visit: Visit) -> Html:
    reason = visit.query.get("reason")
    return tag("span", *(badge(f"reason: {reason[:60]}", "soft"),) if reason else ())


def _columns(visit: Visit, *, may: bool) -> list[Column[DeadLetter]]:
    stream = visit.stream
    found: list[Column[DeadLetter]] = [
        Column(
            "seq", lambda each: link(f"{each.seq:,}", visit.to("streams", stream, "messages", each.seq)), is_number=True
        ),
        Column("died", lambda each: ago(each.died_at)),
        Column("attempts", lambda each: number(each.attempts), is_number=True),
        Column("key", lambda each: tag("code", each.key) if each.key is not None else ""),
        Column("reason", lambda each: each.reason[:_MOST_SHOWN_REASON]),
        Column("data", lambda each: in_list(each.data), is_extra=True),
    ]
    if may:
        found.insert(
            0,
            Column(
                "", lambda each: tag("input", type="checkbox", name="seq", value=each.seq, aria_label=f"seq {each.seq}")
            ),
        )
    return found


def _all_matching(visit: Visit, reason: str | None, key: str | None) -> Html:
    fields = join(
        hidden("which", "matching"),
        field("reason", "Reason begins with", reason or ""),
        field("key", "Key", key or "", placeholder="orders.>"),
        field("rate", "At most, per second", placeholder="no limit", inputmode="numeric"),
    )
    redrive = form(visit, fields, act="redrive", submit=button("Redrive all that match"), class_="inline")
    discard = form(visit, fields, act="discard", submit=button("Discard all that match", danger=True), class_="inline")
    note = tag(
        "p", "It goes on in the background, with its progress below. Empty fields match everything.", class_="soft"
    )
    return join(heading("All that match"), note, redrive, tag("details", tag("summary", "Discard"), discard))
