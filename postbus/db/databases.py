"""Databases on a server: made, copied from a template, and dropped. For tests, which want an empty one each."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql


def create_database(server_url: str, name: str, template: str = "template1") -> str:
    """Create a database, as a copy of another one; its URL.

    Copying the files takes a fraction of the time that installing Postbus takes.
    """
    statement = sql.SQL("create database {} template {} strategy file_copy")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    return url_of(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    """Drop a database, and end the sessions that are connected to it."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def url_of(server_url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
