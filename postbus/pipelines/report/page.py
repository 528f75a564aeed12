"""A report as one page that needs nothing else: no script, no file beside it, no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from postbus.html.markup import Html, tag
from postbus.pipelines.report import words
from postbus.pipelines.report.facts import Report, StreamFacts
from postbus.pipelines.report.sections import consumers, growth, keys, table, throughput


def page(report: Report) -> str:
    """The whole page."""
    style = files("postbus.pipelines.report").joinpath("page.css").read_text()
    title = "Postbus report"
    if len(report.streams) == 1:
        title += f": {report.streams[0].info.name}"
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        # Without one a browser asks for it.
        Html('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", Html(style)),
    )
    body = tag("body", tag("main", _header(title, report), *map(_stream, report.streams), _footer()))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


def _header(title: str, report: Report) -> Html:
    if report.from_time is None and report.to_time is None:
        time = "all that log, history and archive have"
    else:
        start = "the beginning" if report.from_time is None else words.whole_moment(report.from_time)
        end = "now" if report.to_time is None else words.whole_moment(report.to_time)
        time = f"from {start} to {end}"
    said = f"Made {words.whole_moment(report.made_at)}: {time}. All times are UTC."
    parts: list[object] = [tag("h1", title), tag("p", said, class_="soft")]
    if not report.streams:
        parts.append(tag("p", "There are no streams yet. Create one with ", tag("code", "postbus stream add orders")))
    if len(report.streams) > 1:
        parts.append(_overview(report.streams))
    return tag("header", *parts)


def _overview(streams: Sequence[StreamFacts]) -> Html:
    """All streams at a glance, those with the most messages first."""
    order = sorted(streams, key=lambda each: (-sum(each.traffic.messages), each.info.name))
    most = max(sum(each.traffic.messages) for each in streams) or 1
    rows = []
    for each in order:
        messages = sum(each.traffic.messages)
        rows.append(
            tag(
                "tr",
                tag(
                    "th",
                    tag("a", each.info.name, href=f"#{anchor(each)}"),
                    scope="row",
                    class_="share",
                    style=f"--part:{messages / most * 100:.1f}%",
                ),
                tag("td", words.number(messages)),
                tag("td", words.size(sum(each.traffic.bytes))),
                tag("td", words.number(len(each.consumers))),
                tag("td", words.number(max((consumer.lag for consumer in each.consumers), default=0))),
                tag("td", words.number(sum(consumer.dead for consumer in each.consumers))),
            )
        )
    return tag(
        "div", table(("stream", "messages", "data", "consumers", "largest lag", "dead"), rows), class_="card scroll"
    )


def anchor(stream: StreamFacts) -> str:
    """What links to a stream's part of the page."""
    return f"stream-{stream.info.id}"


def _stream(stream: StreamFacts) -> Html:
    parts = (throughput(stream), keys(stream), consumers(stream), growth(stream))
    return tag("section", tag("h2", stream.info.name), _tiles(stream), *parts, class_="stream", id=anchor(stream))


def _tiles(stream: StreamFacts) -> Html:
    traffic = stream.traffic
    messages = sum(traffic.messages)
    facts = {
        "messages": words.number(messages),
        "data": words.size(sum(traffic.bytes)),
        "per message": words.size(sum(traffic.bytes) / messages) if messages else "–",
        "keys": words.number(traffic.key_count),
        "log on disk": words.size(stream.info.bytes),
    }
    if stream.archived is not None:
        facts["archived"] = words.number(stream.archived)
    facts["consumers"] = words.number(len(stream.consumers))
    facts["dead letters"] = words.number(sum(each.dead for each in stream.consumers))
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()), class_="tiles")


def _footer() -> Html:
    return tag(
        "footer",
        tag(
            "p",
            "Counted by Spark over the log and, where there is one, the archive of each stream; deliveries by the histories of "
            "consumers. Latencies run from the moment of publishing to that of the ack, and are within 2 %.",
        ),
    )
