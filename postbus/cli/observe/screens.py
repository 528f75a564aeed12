"""The base of all screens: a status line on top, and keys at the bottom."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Footer, Static

from postbus.cli.observe.dialogs import Confirm
from postbus.cli.observe.help import HelpScreen
from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus.cli.observe.feed import Feed


_PATIENCE_SECONDS: Final = 3.0


class Program(Protocol):
    """The part of the program that screens use."""

    feed: Feed
    shown_url: str


def in_background(node: DOMNode, work: Any, group: str) -> None:
    """Run a coroutine instead of the one in that group. It is given as a function, since it may never start."""
    node.run_worker(work, exclusive=True, group=group)


class Top(Static):
    """The line on top."""

    DEFAULT_CSS = """
    Top { height: 1; background: $panel; color: $text-accent; text-style: bold; padding: 0 1; }
    Top.-problem { background: $error; color: $text; }
    """


def keys() -> Footer:
    """The line at the bottom."""
    footer = Footer(show_command_palette=False)
    footer.compact = True
    return footer


class LiveScreen(Screen[None]):
    """A screen that is refreshed after each query of the bus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("question_mark", "help", "Keys"),
    ]

    @property
    def program(self) -> Program:
        return cast("Program", self.app)

    @property
    def feed(self) -> Feed:
        return self.program.feed

    def compose(self) -> ComposeResult:
        yield Top()
        yield from self.compose_body()
        yield keys()

    def compose_body(self) -> ComposeResult:
        raise NotImplementedError

    def on_mount(self) -> None:
        in_background(self, self.look_again, "look")

    async def look_again(self) -> None:
        """Query and show the data of this screen, unless the user left it meanwhile."""
        try:
            await self.look()
        except Error as error:
            self.feed.problem = error
        except NoMatches:
            return
        if self.is_mounted:
            self.show_top()

    async def look(self) -> None:
        raise NotImplementedError

    def where(self) -> str:
        """What this screen is about."""
        raise NotImplementedError

    def show_top(self) -> None:
        # A screen that is just being opened or left has none.
        for top in self.query(Top):
            problem = self._problem()
            top.set_class(problem is not None, "-problem")
            top.update(Text(problem or self.where(), no_wrap=True, overflow="ellipsis"))

    def _problem(self) -> str | None:
        problem, answered = self.feed.problem, self.feed.answered_at
        if problem is None and self.feed.silent_for < _PATIENCE_SECONDS:
            return None
        since = "" if answered is None else f" for {time.monotonic() - answered:.0f} s"
        message = "still waiting" if problem is None else f"trying again: {problem.message.splitlines()[0]}"
        return f"no answer{since}, {message}"

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def confirm(self, question: str, action: Callable[[], Any]) -> None:
        """Run an action if the user confirms, and show its result."""

        def answered(yes: bool | None) -> None:
            if yes:
                in_background(self, partial(self.attempt, action), "action")

        self.app.push_screen(Confirm(question), answered)

    async def attempt(self, action: Callable[[], Any]) -> None:
        """Run an action, show its result, and refresh."""
        try:
            said = await action()
        except Error as error:
            self.notify(
                f"{error.message}\n{error.hint_for('command line') or ''}".strip(), severity="error", markup=False
            )
        else:
            self.notify(said, markup=False, timeout=3)
        await self.look_again()
