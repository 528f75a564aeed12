"""Writes what the SQL templates come to for the first stream of a database, so that a review sees SQL and its changes.

`python -m tools.render` writes postbus/sql/rendered; with --check it says which files are stale.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import psycopg

from postbus.db import migrations
from postbus.db.embedded import EmbeddedServer

FOLDER: Final = Path(__file__).parents[1] / "postbus" / "sql" / "rendered"
FUNCTIONS: Final = ("publish_1", "publish_many_1", "ack_and_receive_1", "ack_1", "claim_1_1")
_HEADER: Final = (
    "-- Made from ../templates by `make generate`, for stream 1 with 8 partitions and segment 1; do not edit.\n"
)


def rendered(url: str) -> dict[str, str]:
    """By file name, the functions of the first stream of an empty database."""
    migrations.migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select postbus.create_stream('orders')")
        found = {}
        for name in FUNCTIONS:
            row = connection.execute("select pg_get_functiondef(to_regproc(%s))", (f"postbus_data.{name}",)).fetchone()
            assert row is not None, name
            found[f"{name}.sql"] = f"{_HEADER}{row[0].rstrip()};\n"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="say which files are stale, and change nothing")
    arguments = parser.parse_args()
    path = Path(tempfile.mkdtemp(prefix="postbus-render-"))
    path.chmod(0o755)
    try:
        with EmbeddedServer(path, linger=0) as server:
            texts = rendered(server.url)
    finally:
        shutil.rmtree(path, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    stale = [name for name, text in texts.items() if not _is(FOLDER / name, text)]
    orphans = [file.name for file in FOLDER.iterdir() if file.name not in texts]
    if arguments.check:
        for name in (*stale, *orphans):
            print(f"stale: postbus/sql/rendered/{name} (run: make generate)", file=sys.stderr)
        return 1 if stale or orphans else 0
    for name in stale:
        (FOLDER / name).write_text(texts[name])
        print(f"wrote: postbus/sql/rendered/{name}")
    for name in orphans:
        (FOLDER / name).unlink()
    return 0


def _is(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
