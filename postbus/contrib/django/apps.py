"""The app: `manage.py migrate` installs Postbus, or brings it up to date."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class PostbusConfig(AppConfig):
    """Postbus in a database of Django: that of `POSTBUS_DATABASE`, which is "default" if it is not set."""

    name = "postbus.contrib.django"
    label = "postbus"
    verbose_name = "Postbus"

    def ready(self) -> None:
        post_migrate.connect(install, sender=self)


def install(using: str, **_: Any) -> None:
    """Install Postbus, or migrate it, and create the queues of tasks."""
    # Imported late: Django loads this module before connections may be used.
    from postbus.contrib.django.database import database_alias, url_of
    from postbus.contrib.django.queues import create_queues
    from postbus.db import migrations

    if using != database_alias():
        return

    migrations.migrate(url_of(using))
    create_queues(using)
