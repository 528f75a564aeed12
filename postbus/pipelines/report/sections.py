"""The parts of a stream's page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from postbus.html.charts import MOST_SERIES, Series, columns, lines
from postbus.html.markup import Html, join, tag
from postbus.pipelines.report import words
from postbus.pipelines.report.buckets import Buckets
from postbus.pipelines.report.facts import ConsumerFacts, Deliveries, Reason, StreamFacts

_SHOWN_DAYS: Final = (0, 1, 7, 30, 90)


def table(names: Iterable[str], rows: Iterable[Html]) -> Html:
    """A table; its first column are words."""
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    return tag("table", tag("thead", head), tag("tbody", *rows))


def row(first: object, *values: object, share: float | None = None) -> Html:
    """A row of a table, with a bar behind its first cell that shows a share."""
    bar = {} if share is None else {"class_": "share", "style": f"--part:{share * 100:.1f}%"}
    return tag("tr", tag("th", first, scope="row", **bar), *(tag("td", value) for value in values))


def empty(*said: object) -> Html:
    """What stands where there is nothing to show."""
    return tag("p", *said, class_="empty")


def throughput(stream: StreamFacts) -> Html:
    """Messages and bytes over time."""
    title = tag("h3", "Throughput")
    buckets = stream.buckets
    if buckets is None or not sum(stream.traffic.messages):
        return join(title, empty("No message was published in this time."))
    places, unit = places_of(buckets), words.bucket(buckets.seconds)
    peak = max(stream.traffic.messages) / buckets.seconds
    mean = sum(stream.traffic.messages) / (buckets.count * buckets.seconds)
    said = tag("p", f"{words.number(mean)} messages per second on average, {words.number(peak)} in the busiest {unit}.")
    messages = columns("Messages published", stream.traffic.messages, places, format=words.short, unit=f"per {unit}")
    sizes = columns("Data published", stream.traffic.bytes, places, format=words.size, unit=f"per {unit}")
    return join(title, said, tag("div", messages, sizes, class_="pair"))


def places_of(buckets: Buckets) -> list[str]:
    """The name of each bucket."""
    return [words.moment(start, buckets.seconds) for start in buckets.starts[:-1]]


def keys(stream: StreamFacts) -> Html:
    """The keys with the most messages."""
    title = tag("h3", "Hot keys")
    traffic = stream.traffic
    if not traffic.keys:
        return join(title, empty("No keys, because there are no messages."))
    total = sum(traffic.messages)
    rows = [
        row(
            tag("em", "no key") if key.key is None else tag("code", key.key),
            words.number(key.messages),
            f"{key.messages / total:.1%}",
            words.size(key.bytes),
            share=key.messages / traffic.keys[0].messages,
        )
        for key in traffic.keys
    ]
    said = (
        f"The busiest of {words.number(traffic.key_count)} keys. Messages of a key are in one partition, and come one after "
        "the other."
    )
    return join(
        title, tag("p", said), tag("div", table(("key", "messages", "share", "data"), rows), class_="card scroll")
    )


def consumers(stream: StreamFacts) -> Html:
    """What consumers did, and where they stand."""
    if not stream.consumers:
        return join(tag("h3", "Consumers"), empty("The stream has no consumer."))
    known = [(each, each.deliveries) for each in stream.consumers if each.deliveries is not None]
    parts = [tag("h3", "Consumers now"), _now(stream.consumers)]
    if not known or stream.buckets is None:
        parts += [tag("h3", "Latency, redeliveries and lag over time"), _no_history(stream)]
    else:
        known.sort(key=lambda each: -sum(each[1].acked))
        parts += [_latency(known, stream.buckets), _redeliveries(known, stream.buckets), _lag(known, stream.buckets)]
        forgetful = [each.name for each in stream.consumers if each.deliveries is None and not each.is_group]
        if forgetful:
            parts.append(
                tag("p", f"Without a history, and so not in the charts: {', '.join(forgetful)}.", class_="soft")
            )
    parts += [tag("h3", "Dead letters by reason"), _dead(stream.dead)]
    return join(*parts)


def _levels(found: ConsumerFacts) -> str:
    return ", ".join(f"{level}: {words.number(count)}" for level, count in found.by_priority.items())


def _now(found: Sequence[ConsumerFacts]) -> Html:
    has_levels = any(len(each.by_priority) > 1 for each in found)
    rows = [
        row(
            each.name,
            *(words.number(value) for value in (each.lag, each.in_flight, each.waiting, each.dead, each.missed)),
            *([_levels(each)] if has_levels else []),
        )
        for each in found
    ]
    names = ["consumer", "lag, about", "in flight", "waiting", "dead", "missed, about"]
    if has_levels:
        names.append("by priority")
    return tag("div", table(names, rows), class_="card scroll")


def _no_history(stream: StreamFacts) -> Html:
    name = next((each.name for each in stream.consumers if not each.is_group), "billing")
    command = f"postbus consumer edit {stream.info.name} {name} --keep-history 7d"
    return empty("No consumer has a history of its deliveries in this time. To have one kept: ", tag("code", command))


def _latency(known: Sequence[tuple[ConsumerFacts, Deliveries]], buckets: Buckets) -> Html:
    rows = [
        row(
            each.name,
            words.number(sum(done.acked)),
            *(words.duration(value) for value in (done.latency.p50, done.latency.p95, done.latency.p99, done.slowest)),
            words.duration(done.waited),
            words.duration(done.worked),
        )
        for each, done in known
    ]
    names = ("consumer", "acked", "p50", "p95", "p99", "slowest", "waited, mean", "worked, mean")
    unit = f"of what was acked in each {words.bucket(buckets.seconds)}; by powers of ten"
    charts = [
        lines(
            f"Latency of {each.name}",
            [Series(name, [getattr(at, name) for at in done.latencies]) for name in ("p50", "p95", "p99")],
            places_of(buckets),
            format=words.duration,
            unit=unit,
            log=True,
        )
        for each, done in known[:MOST_SERIES]
        if done.latency.p50 is not None
    ]
    said = (
        "From published to acked. A message first waits to be received, and is then worked on until it is acked; failures "
        "before that are part of the wait."
    )
    unknown = sum(done.unknown for _, done in known)
    note = (
        f"{words.number(unknown)} finished messages are gone from log and archive, and not in it." if unknown else None
    )
    return join(
        tag("h3", "Latency"),
        tag("p", said, " ", note),
        tag("div", table(names, rows), class_="card scroll"),
        tag("div", *charts, class_="pair"),
    )


def _redeliveries(known: Sequence[tuple[ConsumerFacts, Deliveries]], buckets: Buckets) -> Html:
    title = tag("h3", "Redeliveries and failures")
    if not any(sum(done.redelivered) + sum(done.failed) + sum(done.dead) for _, done in known):
        return join(title, empty("Every message was acked at its first delivery."))
    rows = [
        row(each.name, *(words.number(sum(counts)) for counts in (done.redelivered, done.failed, done.dead)))
        for each, done in known
    ]
    unit = f"per {words.bucket(buckets.seconds)}"
    series = [Series(each.name, [a + b for a, b in zip(done.failed, done.dead, strict=True)]) for each, done in known]
    chart = lines("Failed deliveries", series, places_of(buckets), format=words.short, unit=unit)
    failures = [reason for _, done in known for reason in done.failures]
    return join(
        title,
        tag(
            "div",
            tag(
                "div", table(("consumer", "redelivered", "failed, came again", "given up"), rows), class_="card scroll"
            ),
            chart,
            class_="pair",
        ),
        _reasons(failures, "deliveries") if failures else None,
    )


def _lag(known: Sequence[tuple[ConsumerFacts, Deliveries]], buckets: Buckets) -> Html:
    unit = f"messages at the end of each {words.bucket(buckets.seconds)}"
    series = [Series(each.name, done.lag) for each, done in known]
    said = (
        "Derived from the histories: at each moment, the messages that had been published and were finished later, or have "
        "not been given to the consumer yet. What is in flight or waits for a retry now is not in it, and what was replayed "
        "counts twice."
    )
    filtered = [each.name for each, _ in known if not each.unread_known]
    note = (
        f" Because they filter by headers or data, messages not given out yet are left out for {', '.join(filtered)}."
        if filtered
        else None
    )
    chart = lines("Lag over time", series, places_of(buckets), format=words.short, unit=unit)
    return join(tag("h3", "Lag"), tag("p", said, note), chart)


def _dead(found: Sequence[Reason]) -> Html:
    return _reasons(found, "dead letters") if found else empty("There are no dead letters.")


def _reasons(found: Sequence[Reason], what: str) -> Html:
    most = max(each.count for each in found)
    rows = [
        tag(
            "tr",
            tag(
                "th",
                tag("em", "no reason given") if each.reason is None else each.reason,
                scope="row",
                class_="share",
                style=f"--part:{each.count / most * 100:.1f}%",
            ),
            tag("td", each.consumer),
            tag("td", words.number(each.count)),
            tag("td", words.whole_moment(each.last_at)),
        )
        for each in found
    ]
    return tag("div", table(("reason", "consumer", what, "last"), rows), class_="card scroll")


def growth(stream: StreamFacts) -> Html:
    """Where it is going."""
    title = tag("h3", "Growth")
    found = stream.forecast
    if found is None:
        if stream.info.until_acked:
            return join(
                title, empty("The stream keeps messages until they are acked: what it holds depends on its consumers.")
            )
        return join(title, empty("A forecast needs at least an hour of messages, and no end of the report's time."))
    said = (
        f"If it goes on as in the last {words.duration(found.days * 86400)}: {words.number(found.per_day)} messages a day, "
        f"between {words.number(found.per_day_low)} in the quietest part of that time and "
        f"{words.number(found.per_day_high)} in the busiest. "
    )
    said += f"Retention: {found.bound}." if found.bound else "Nothing bounds the stream: it keeps all messages."
    if found.full_in is not None:
        said += f" That limit is reached in {words.duration(found.full_in * 86400)}."
    has_archive = any(point.archive_bytes is not None for point in found.points)
    rows = [
        row(
            "now" if point.days == 0 else f"in {point.days} day{'s' if point.days > 1 else ''}",
            words.number(point.messages),
            _range(point.messages_low, point.messages_high, words.short),
            words.size(point.bytes),
            _range(point.bytes_low, point.bytes_high, words.size),
            *((words.size(point.archive_bytes or 0),) if has_archive else ()),
        )
        for point in found.points
        if point.days in _SHOWN_DAYS
    ]
    chart = lines(
        "Log on disk",
        [
            Series("as of late", [point.bytes for point in found.points]),
            Series("as in the quietest part", [point.bytes_low for point in found.points]),
            Series("as in the busiest part", [point.bytes_high for point in found.points]),
        ],
        [f"day {point.days}" for point in found.points],
        format=words.size,
        unit="in the days to come",
    )
    names = ("", "messages in the log", "range", "log on disk", "range", *(("archive",) if has_archive else ()))
    return join(title, tag("p", said), tag("div", table(names, rows), class_="card scroll"), chart)


def _range(low: int, high: int, format: Callable[[float], str]) -> str:
    return "–" if low == high else f"{format(low)} – {format(high)}"
