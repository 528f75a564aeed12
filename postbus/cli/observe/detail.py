"""One message in full."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from rich.console import Group
from rich.json import JSON
from rich.table import Table as RichTable
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from postbus.cli import output
from postbus.cli.observe.screens import Top, keys


class DetailScreen(Screen[None]):
    """A message: what is known of it, its headers, and its data, JSON set out in lines."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "app.pop_screen", "Back")]
    DEFAULT_CSS = "DetailScreen VerticalScroll { padding: 1 2; }"

    def __init__(self, stream: str, message: Any) -> None:
        super().__init__()
        self._stream, self._message = stream, message

    def compose(self) -> ComposeResult:
        yield Top(Text(f"{self._stream}  message {self._message.seq}"))
        with VerticalScroll():
            yield Static(self._rendered())
        yield keys()

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def _rendered(self) -> Group:
        facts = RichTable.grid(padding=(0, 2))
        for name in (
            "seq",
            "key",
            "published_at",
            "partition",
            "state",
            "attempts",
            "until",
            "last_delivered_at",
            "reason",
            "ack_id",
        ):
            if hasattr(self._message, name):
                value = getattr(self._message, name)
                facts.add_row(
                    Text(name.replace("_", " "), style="dim"), Text(str(value) if name == "seq" else output.cell(value))
                )
        for name, value in (self._message.headers or {}).items():
            facts.add_row(Text(f"header {name}", style="dim"), Text(str(value)))
        return Group(facts, Text(""), _data(self._message.data))


def _data(data: Any) -> JSON | Text:
    if isinstance(data, bytes):
        return Text(f"{len(data):,} bytes, in base64:\n{output.cell(data)}")
    return JSON(json.dumps(data, ensure_ascii=False), indent=2, ensure_ascii=False)
