"""HTML that is safe by construction: text is escaped unless it is Html already."""

from __future__ import annotations

from html import escape
from typing import Final

_VOID: Final = frozenset(("br", "hr", "img", "input", "link", "meta"))


class Html(str):
    """Markup, as opposed to text."""

    __slots__ = ()


def markup(value: object) -> Html:
    """Text as markup; markup stays what it is."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. None among its children and attributes is left out; class_ and aria_label are written as HTML does."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    inner = "".join(markup(child) for child in children if child is not None)
    return Html(f"<{name}{written}>{inner}</{name}>")


def join(*parts: object) -> Html:
    """One after the other."""
    return Html("".join(markup(part) for part in parts if part is not None))
