"""All keys, and what the words mean."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.table import Table as RichTable
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

# A key, as bindings name it, and what it does; a line without a key is a title.
KEYS: Final = (
    ("", "everywhere"),
    ("up down pageup pagedown home end", "move"),
    ("tab", "go to the other table"),
    ("enter", "open the selected row"),
    ("escape q", "go back; on the first screen, q ends the program"),
    ("s", "sort by the next column"),
    ("S", "reverse the order"),
    ("question_mark", "this page"),
    ("", "streams and consumers"),
    ("slash", "search streams by part of their names"),
    ("p", "pause or resume the consumer"),
    ("g", "move the consumer to another position"),
    ("w", "sources: tables whose changes become messages"),
    ("c", "recurring schedules: their next times and last runs"),
    ("d", "redrive dead letters: all of the consumer, or the selected one"),
    ("", "messages"),
    ("f", "only keys that match a pattern"),
    ("n b", "older messages, newer ones"),
    ("l", "live again"),
    ("", "a consumer"),
    ("t", "only messages that are available, delivered, waiting, dead"),
    ("a x", "ack or nack a message that is in flight"),
    ("D", "redrive all dead letters"),
    ("", "recurring schedules"),
    ("r", "publish the message of the selected one now"),
    ("", "words"),
    ("backlog", "not finished: not delivered, in flight, waiting, or parked; ~ is an estimate"),
    ("state", "FULL refuses messages; dead has dead letters; behind has messages unread for a minute"),
)
_SHOWN: Final = {
    "question_mark": "?",
    "slash": "/",
    "escape": "esc",
    "pageup": "pg up",
    "pagedown": "pg dn",
    "up": "\u2191",
    "down": "\u2193",
}


class HelpScreen(Screen[None]):
    """The keys of all screens."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "app.pop_screen", "Back")]
    DEFAULT_CSS = "HelpScreen VerticalScroll { padding: 0 2; }"

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(_table())
        footer = Footer(show_command_palette=False)
        footer.compact = True
        yield footer

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _table() -> RichTable:
    table = RichTable.grid(padding=(0, 2))
    for keys, meaning in KEYS:
        if not keys:
            table.add_row(Text(meaning, style="bold"), "")
            continue
        shown = " ".join(_SHOWN.get(key, key) for key in keys.split())
        table.add_row(Text(shown, style="cyan"), Text(meaning))
    return table
