"""The pages of a stream, as tabs."""

from __future__ import annotations

from postbus.html.markup import Html, tag
from postbus.server.console.parts import link
from postbus.server.console.visit import Visit


def tabs(visit: Visit, stream: str, current: str) -> Html:
    """The pages of a stream."""
    pages = [
        ("overview", "Overview", ()),
        ("messages", "Messages", ("messages",)),
        ("publish", "Publish", ("publish",)),
        ("schedules", "Schedules", ("schedules",)),
        ("archive", "Archive", ("archive",)),
        ("settings", "Settings", ("settings",)),
    ]
    if not visit.may("publish", stream):
        pages = [each for each in pages if each[0] != "publish"]
    links = [
        tag("li", link(words, visit.to("streams", stream, *path), aria_current="page" if name == current else None))
        for name, words, path in pages
    ]
    return tag("nav", tag("ul", *links), class_="tabs", aria_label="Stream")
