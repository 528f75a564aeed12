"""The database of Django that Postbus is in."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

# Options of libpq that settings of Django may have. Others are for Django's own connections.
_OPTIONS: Final = (
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "service",
    "passfile",
    "target_session_attrs",
    "connect_timeout",
)


def database_alias() -> str:
    """The database in which Postbus is."""
    return str(getattr(settings, "POSTBUS_DATABASE", "default"))


def url_of(alias: str) -> str:
    """The URL of a database of Django: during its tests, that of the test database.

    Raises:
        ImproperlyConfigured: It is not a Postgres.
    """
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(f'Postbus needs PostgreSQL; the database "{alias}" is {connection.display_name}')
    given: dict[str, Any] = connection.settings_dict
    user = quote(str(given["USER"]), safe="")
    if given["PASSWORD"]:
        user += f":{quote(str(given['PASSWORD']), safe='')}"
    options = {name: str(value) for name, value in given["OPTIONS"].items() if name in _OPTIONS}
    for name, value in (("host", given["HOST"]), ("port", given["PORT"])):
        if value:
            options[name] = str(value)
    query = f"?{urlencode(options)}" if options else ""
    return f"postgresql://{f'{user}@' if user else ''}/{quote(str(given['NAME']), safe='')}{query}"
