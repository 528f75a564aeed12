from __future__ import annotations

import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests import servers


@pytest.fixture
def plain_url(server: servers.Server, empty_url: str) -> Iterator[str]:
    """A database without Postbus, as a role sees it that may create schemas in it, and nothing else."""
    role, password = f"plain_{secrets.token_hex(4)}", secrets.token_hex(8)
    database = urlsplit(empty_url).path.removeprefix("/")
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute(f"create role {role} login password '{password}'".encode())
        owner.execute(f"grant create on database {database} to {role}".encode())
        parts = urlsplit(empty_url)
        yield urlunsplit(parts._replace(netloc=f"{role}:{password}@{parts.netloc.rpartition('@')[2]}"))
        with psycopg.connect(empty_url, autocommit=True) as inside:
            inside.execute(f"drop owned by {role} cascade".encode())
        owner.execute(f"drop role {role}".encode())
