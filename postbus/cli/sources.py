"""`postbus source`: what feeds streams from outside, a group of commands for each kind."""

from __future__ import annotations

from postbus.cli import webhook_sources
from postbus.cli.global_options import Commands

app = Commands("Sources: what feeds streams from outside.")
app.add_typer(webhook_sources.app, name="webhook")
