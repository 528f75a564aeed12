"""Actions on a consumer, each after a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postbus.cli.consumer_settings import start as start_of
from postbus.cli.observe.dialogs import Ask
from postbus.cli.output import counted
from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus.cli.observe.screens import LiveScreen


def pause_or_resume(screen: LiveScreen, stream: str, consumer: str, *, paused: bool) -> None:
    """Pause or resume it."""
    bound = screen.feed.bus.consumer(stream, consumer)

    async def act() -> str:
        await (bound.resume() if paused else bound.pause())
        return f"{consumer} {'goes on' if paused else 'is paused'}"

    screen.confirm(f"{'Resume' if paused else 'Pause'} {consumer} of {stream}?", act)


def seek(screen: LiveScreen, stream: str, consumer: str, *, in_flight: int) -> None:
    """Ask for a position, then for confirmation."""
    bound = screen.feed.bus.consumer(stream, consumer)

    def asked(to: str | None) -> None:
        if not to:
            return
        try:
            start = start_of(to)
        except Error as error:
            screen.notify(f"{error.message}; {error.hint_for('command line')}", severity="error", markup=False)
            return

        async def act() -> str:
            return f"{consumer} reads on after seq {await bound.seek(**start)}"

        lost = (
            f" {counted(in_flight, 'message')} in flight {'is' if in_flight == 1 else 'are'} given up."
            if in_flight
            else ""
        )
        screen.confirm(f"Move {consumer} of {stream} to {to}?{lost}", act)

    hint = "earliest, latest, a seq, a time, or an age such as 10m"
    screen.app.push_screen(Ask(f"Move {consumer} to which position?", hint=hint), asked)


def redrive(screen: LiveScreen, stream: str, consumer: str, *, seq: int | None, dead: int) -> None:
    """Redrive one dead letter, or all."""
    bound = screen.feed.bus.consumer(stream, consumer)

    async def act() -> str:
        redriven = await bound.redrive(seqs=None if seq is None else [seq])
        return f"redrove {counted(redriven, 'dead letter')}"

    which = f"dead letter {seq}" if seq is not None else f"all {counted(dead, 'dead letter')}"
    screen.confirm(f"Redrive {which} of {consumer}?", act)


def settle(screen: LiveScreen, stream: str, consumer: str, *, seq: int, ack_id: str, ack: bool) -> None:
    """Ack or nack a delivery that another receiver has in flight."""
    bound = screen.feed.bus.consumer(stream, consumer)

    async def act() -> str:
        count = await (bound.ack(ack_id) if ack else bound.nack(ack_id, reason="nacked by hand"))
        done = f"{'acked' if ack else 'nacked'} {seq}"
        return done if count else f"{seq} was settled before, or went to somebody else"

    verb = "Ack" if ack else "Nack"
    screen.confirm(f"{verb} message {seq}, which a worker has in flight?", act)
