"""Dialogs: yes or no, and a line of text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_CSS = """
Confirm, Ask { align: center middle; }
Confirm > Vertical, Ask > Vertical {
    width: 64; max-width: 90%; height: auto; padding: 1 2; background: $surface; border: round $primary;
}
Confirm .hint, Ask .hint { color: $text-muted; margin-top: 1; }
Ask Input, Ask Input:focus { margin-top: 1; border: none; height: 1; padding: 0; background: $panel; }
"""


class Confirm(ModalScreen[bool]):
    """Asks before something is changed."""

    DEFAULT_CSS = _CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Static("y  yes     n  no", classes="hint", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Ask(ModalScreen[str | None]):
    """Asks for a line; None when it was not given."""

    DEFAULT_CSS = _CSS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, question: str, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._question, self._value, self._hint = question, value, hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Input(self._value, select_on_focus=False)
            yield Static(self._hint or "enter  accept     escape  cancel", classes="hint", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        self.dismiss(None)
