"""What stands around each page: the menu, the search, where the page is, and the theme."""

from __future__ import annotations

from typing import Final

from postbus.html.markup import Html, join, tag
from postbus.server.console import session, static_files
from postbus.server.console.parts import badge, link
from postbus.server.console.visit import Page, Visit

_MENU: Final = (
    ("overview", "Overview", ()),
    ("streams", "Streams", ("streams",)),
    ("consumers", "Consumers", ("consumers",)),
    ("dead", "Dead letters", ("dead",)),
    ("schedules", "Schedules", ("schedules",)),
    ("sources", "Sources", ("sources",)),
    ("push", "Push", ("push",)),
    ("pipelines", "Pipelines", ("pipelines",)),
    ("doctor", "Doctor", ("doctor",)),
    ("tokens", "Tokens", ("tokens",)),
)
_OF_ALL: Final = ("sources", "push", "doctor", "tokens")
_NEXT_THEME: Final = {"auto": "light", "light": "dark", "dark": "auto"}
_KEYS: Final = (
    ("/", "search"),
    ("g o, g s, g c, g d", "overview, streams, consumers, dead letters"),
    ("j, k", "the next row, the one before"),
    ("enter", "open the row"),
    ("esc", "the page above"),
    ("n, b", "the next page of a list, the one before"),
    ("f", "the first field: what to look for"),
    ("t", "of a consumer: messages in the next state"),
    ("d, w, c", "dead letters, sources, schedules"),
    ("l", "pause and resume what the page shows by itself"),
    ("?", "this help"),
)


def document(visit: Visit, page: Page, *, is_alone: bool = False) -> str:
    """The whole page; alone, without the menu."""
    theme = session.theme_of(visit.cookies)
    # Addresses in the head are relative to the page, as all are.
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", f"{page.title} · Postbus"),
        Html(f'<link rel="icon" href="{visit.root}{static_files.path("icon.svg")}" type="image/svg+xml">'),
        Html(f'<link rel="stylesheet" href="{visit.root}{static_files.path("console.css")}">'),
        tag("script", "", type="module", src=visit.root + static_files.path("console.js")),
    )
    main = tag("main", _crumbs(visit, page), _said(visit), page.body, id="main")
    inner = (
        main if is_alone else join(_menu(visit, page), tag("div", _top(visit, theme), main, class_="column"), _help())
    )
    body = tag("body", inner, class_="alone" if is_alone else None, data_root=visit.root)
    return "<!doctype html>\n" + tag("html", head, body, lang="en", data_theme=theme)


def _menu(visit: Visit, page: Page) -> Html:
    entries = []
    for name, words, path in _MENU:
        if name in _OF_ALL and not visit.token.may("manage", None):
            continue
        current = "page" if page.tab == name else None
        entries.append(tag("li", link(words, visit.to(*path), aria_current=current)))
    brand = link(join(_mark(), "Postbus"), visit.to(), class_="brand")
    return tag("nav", brand, tag("ul", *entries), class_="menu", aria_label="Console")


def _mark() -> Html:
    """The sign: an envelope on rails."""
    return Html(
        '<svg viewBox="0 0 24 24" aria-hidden="true" class="mark"><rect x="2" y="5" width="20" height="12" rx="2.5"/>'
        '<path d="M3.5 7.5 12 13l8.5-5.5M6 21h12"/></svg>'
    )


def _top(visit: Visit, theme: str) -> Html:
    search = tag(
        "form",
        Html(
            '<input type="search" name="q" id="search" autocomplete="off" aria-label="Search" '
            'placeholder="stream, stream#seq, stream key:orders.&gt;   ( / )">'
        ),
        action=visit.to("search"),
        role="search",
    )
    is_open = visit.state.settings.is_open
    who = badge("open: no tokens", "warn") if is_open else badge(visit.token.name, "soft")
    leave = (
        None
        if is_open
        else tag("form", tag("button", "Log out", class_="quiet"), method="post", action=visit.to("logout"))
    )
    change = tag(
        "form",
        Html(f'<input type="hidden" name="theme" value="{_NEXT_THEME[theme]}">'),
        tag(
            "button",
            {"auto": "◐", "light": "☀", "dark": "☾"}[theme],
            class_="quiet",
            title=f"theme: {theme}",
            aria_label=f"theme: {theme}",
        ),
        method="post",
        action=visit.to("theme"),
    )
    read_only = badge("read-only", "soft") if visit.is_read_only else None
    live = tag(
        "button",
        "live",
        id="live",
        class_="quiet",
        hidden="",
        type="button",
        aria_pressed="true",
        title="pause or resume (l)",
    )
    return tag("header", search, tag("div", live, read_only, who, change, leave, class_="who"), class_="top")


def _crumbs(visit: Visit, page: Page) -> Html | None:
    if not page.crumbs:
        return tag("h1", page.title)
    links = [tag("li", link(words, to)) for words, to in page.crumbs]
    return tag("div", tag("nav", tag("ol", *links), class_="crumbs", aria_label="Where this is"), tag("h1", page.title))


def _said(visit: Visit) -> Html | None:
    text = session.what_was_said(visit.cookies)
    return tag("p", text, class_="said", role="status") if text else None


def _help() -> Html:
    rows = [tag("tr", tag("th", tag("kbd", keys), scope="row"), tag("td", what)) for keys, what in _KEYS]
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("h2", "Keys"), tag("table", tag("tbody", *rows)), close, id="keys")
