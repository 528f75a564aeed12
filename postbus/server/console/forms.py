"""Forms: fields with their labels, and buttons. Each form can also be shown as code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from postbus.html.markup import Html, join, tag
from postbus.server.console.visit import Visit


def form(
    visit: Visit, *children: object, act: str, submit: Html, class_: str = "stack", to: str = "", code: bool = True
) -> Html:
    """A form that changes something. `act` says what, to the page that gets it."""
    return tag(
        "form",
        hidden("act", act),
        _with_ids_of(act, join(*children)),
        tag("div", submit, code_button(act) if code else None, class_="buttons"),
        method="post",
        action=to or visit.here(),
        class_=class_,
    )


def _with_ids_of(act: str, fields: Html) -> Html:
    """Fields whose ids are their form's own, since two forms of a page may have fields of one name.

    Text of others cannot be taken for an id: its quotes are escaped.
    """
    return Html(re.sub(r'\b(id|for|aria-describedby)="([fh])-', rf'\1="\2-{act}-', fields))


def row_form(visit: Visit, *fields: Html, acts: Sequence[tuple[str, str] | tuple[str, str, str]]) -> Html:
    """A form of buttons, for a row of a table. Each act has its words, and perhaps what they mean."""
    buttons = [
        tag("button", words, name="act", value=act, title=more[0] if more else None) for act, words, *more in acts
    ]
    return tag(
        "form",
        *fields,
        *buttons,
        code_button(*(each[0] for each in acts), words="</>"),
        method="post",
        action=visit.here(),
        class_="row",
    )


def code_button(*acts: str, words: str = "as code") -> Html:
    """Shows what a form would do, for each of these acts, and changes nothing."""
    return tag(
        "button",
        words,
        name="as_code",
        value=",".join(acts),
        class_="quiet",
        formnovalidate="",
        title="as curl, Python and SQL",
        aria_label=None if words == "as code" else "as code",
    )


def hidden(name: str, value: object) -> Html:
    return tag("input", type="hidden", name=name, value=value)


def button(words: str, *, danger: bool = False, primary: bool = False, **attributes: object) -> Html:
    """A button that sends its form."""
    return tag("button", words, class_="danger" if danger else "primary" if primary else None, **attributes)


def field(
    name: str,
    label: str,
    value: object = "",
    *,
    kind: str = "text",
    help: str = "",
    required: bool = False,
    placeholder: str | None = None,
    **attributes: object,
) -> Html:
    """An input with its label."""
    box = tag(
        "input",
        type=kind,
        name=name,
        id=f"f-{name}",
        value=value,
        placeholder=placeholder,
        required="" if required else None,
        autocomplete="off",
        aria_describedby=f"h-{name}" if help else None,
        **attributes,
    )
    return _labelled(name, label, box, help)


def text_area(name: str, label: str, value: str = "", *, help: str = "", rows: int = 6) -> Html:
    """A field of several lines."""
    # A line break right behind the tag would be dropped.
    box = tag("textarea", "\n" + value, name=name, id=f"f-{name}", rows=rows, spellcheck="false")
    return _labelled(name, label, box, help)


def choice(
    name: str, label: str, options: Sequence[str | tuple[str, str]], chosen: str = "", *, help: str = ""
) -> Html:
    """A choice of values, perhaps with other words for them."""
    pairs = [each if isinstance(each, tuple) else (each, each) for each in options]
    shown = [tag("option", words, value=value, selected="" if value == chosen else None) for value, words in pairs]
    return _labelled(name, label, tag("select", *shown, name=name, id=f"f-{name}"), help)


def tick(name: str, label: str, *, is_on: bool = False, help: str = "") -> Html:
    """A box to tick."""
    box = tag("input", type="checkbox", name=name, id=f"f-{name}", value="yes", checked="" if is_on else None)
    words = tag("label", box, " ", label, class_="tick")
    return tag("div", words, tag("small", help, class_="soft") if help else None, class_="field")


def named_confirmation(name: str, what: str) -> Html:
    """What will happen, and a field into which the name must be typed first."""
    return join(tag("p", what), field("name", f"Type {name} to confirm", required=True))


def _labelled(name: str, label: str, box: Html, help: str) -> Html:
    return tag(
        "div",
        tag("label", label, for_=f"f-{name}"),
        box,
        tag("small", help, id=f"h-{name}", class_="soft") if help else None,
        class_="field",
    )
