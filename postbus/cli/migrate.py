"""`postbus migrate`: installs or upgrades the schema."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.target import postgres_url


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the SQL without running it.")] = False,
) -> None:
    """Install Postbus in a database, or upgrade it.

    Example: postbus migrate --url postgresql://me@db.example.com/app
    """
    from postbus.db import migrations

    with postgres_url(for_what="migrate", install=False) as url:
        steps = migrations.migrate(url, dry_run=dry_run)
    for step in steps:
        output.done(f"{'would run' if dry_run else 'done'}: {step.name}", step=step.name, done=not dry_run)
        if dry_run and not output.as_json():
            typer.echo(step.statements)
    if not steps:
        output.say("nothing to do: the database is up to date")
