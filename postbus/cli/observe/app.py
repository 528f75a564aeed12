"""The program: it queries the bus, one query at a time, and then refreshes the screen on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from postbus.cli.observe.consumer import ConsumerScreen
from postbus.cli.observe.feed import Feed
from postbus.cli.observe.messages import MessagesScreen
from postbus.cli.observe.overview import OverviewScreen
from postbus.cli.observe.screens import LiveScreen, in_background

if TYPE_CHECKING:
    from postbus import AsyncBus


class Observe(App[None]):
    """An htop for the bus."""

    TITLE = "postbus observe"
    ENABLE_COMMAND_PALETTE = False
    CSS = "Toast { max-width: 60; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", "Quit", show=False, priority=True)]

    def __init__(
        self,
        bus: AsyncBus,
        *,
        shown_url: str,
        interval: float = 2.0,
        stream: str | None = None,
        consumer: str | None = None,
    ) -> None:
        super().__init__()
        self.feed = Feed(bus)
        self.shown_url = shown_url
        self._interval = interval
        self._stream, self._consumer = stream, consumer

    async def on_mount(self) -> None:
        await self.feed.refresh()
        self.push_screen(OverviewScreen(self._stream))
        if self._stream is not None and self._consumer is not None:
            self.push_screen(ConsumerScreen(self._stream, self._consumer))
        elif self._stream is not None:
            self.push_screen(MessagesScreen(self._stream))
        self.set_interval(self._interval, self._tick)

    def _tick(self) -> None:
        # While a query is slow, another one would only make it slower.
        if not any(worker.group == "tick" and not worker.is_finished for worker in self.workers):
            in_background(self, self.look_again, "tick")
        elif self.top_screen is not None:
            self.top_screen.show_top()

    async def look_again(self) -> None:
        """Query the bus, and refresh the screen."""
        await self.feed.refresh()
        if self.top_screen is not None:
            await self.top_screen.look_again()

    @property
    def top_screen(self) -> LiveScreen | None:
        """The screen that shows the bus; a dialog may cover it."""
        live = [screen for screen in self.screen_stack if isinstance(screen, LiveScreen) and screen.is_mounted]
        return live[-1] if live else None
