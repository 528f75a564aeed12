"""Writes what is made from other files: the sync twins of async code, what SQL repeats of the settings, the one-file install.

python -m tools.generate [--check]
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

from postbus import sql
from tools import (
    cli_reference,
    errors_reference,
    http_reference,
    metrics_reference,
    python_reference,
    settings_reference,
    settings_sql,
    spark_reference,
    sql_reference,
)

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
HTTP_PAGE = REFERENCE / "http.md"
# The pages that are made as a whole.
PAGES = {
    "cli": cli_reference.reference,
    "errors": errors_reference.reference,
    "metrics": metrics_reference.reference,
    "python": python_reference.reference,
    "settings": settings_reference.reference,
    "spark": spark_reference.reference,
    "sql": sql_reference.reference,
}
# Where async code lives, and where its twin goes.
TWINS = {
    str(folder.relative_to(ROOT)): str((folder.parent / "_sync").relative_to(ROOT))
    for folder in sorted((ROOT / "postbus").glob("*/_async"))
}
DROPPED = {"async", "await"}
RENAMED = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "asynccontextmanager": "contextmanager",
    "async_sleep": "sleep",
    "_async": "_sync",
    "connect_async": "connect",
}
ASYNC_NAME = re.compile(r"Async(?=[A-Z])")
# Lines that have no twin.
REWRITTEN = (
    (re.compile(r"^import asyncio\n", re.M), ""),
    (re.compile(r"return asyncio\.to_thread\(function, "), "return function("),
    (
        re.compile(r'"""Run something that blocks without stopping the event loop\."""'),
        '"""Run something that blocks."""',
    ),
    (re.compile(r"between tasks"), "between threads"),
    (
        re.compile(r", written once with async; `_sync` is generated from it by `make generate`\."),
        ", generated from `_async`.",
    ),
)
NOTE = "# Generated from {source} by `make generate`; edit that file.\n\n"


def twin_of(source: str) -> str:
    """The sync twin of async source code."""
    lines = source.splitlines(keepends=True)
    edits: list[tuple[int, int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.NAME:
            continue
        row, start = token.start
        end = token.end[1]
        if token.string in DROPPED:
            edits.append((row - 1, start, end + 1, ""))
        elif (renamed := RENAMED.get(token.string) or ASYNC_NAME.sub("", token.string)) != token.string:
            edits.append((row - 1, start, end, renamed))
    for row, start, end, text in reversed(edits):
        lines[row] = lines[row][:start] + text + lines[row][end:]
    twin = "".join(lines)
    for pattern, replacement in REWRITTEN:
        twin = pattern.sub(replacement, twin)
    return twin.replace("postbus.connect_async", "postbus.connect")


def formatted(code: str, path: Path) -> str:
    """Code as ruff would write it."""
    ruff = [sys.executable, "-m", "ruff"]
    sort = [*ruff, "check", "--quiet", "--fix", "--select", "I", "--stdin-filename", str(path), "-"]
    layout = [*ruff, "format", "--quiet", "--stdin-filename", str(path), "-"]
    for command in (sort, layout):
        code = subprocess.run(command, input=code, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return code


def generated() -> dict[Path, str]:
    """Every generated file and what it should hold."""
    wanted = {
        ROOT / "postbus" / "sql" / "install.sql": sql.install_script(),
        HTTP_PAGE: http_reference.with_requests(HTTP_PAGE.read_text()),
        **{REFERENCE / f"{name}.md": page() for name, page in PAGES.items()},
    }
    for source_folder, twin_folder in TWINS.items():
        for source in sorted((ROOT / source_folder).glob("*.py")):
            target = ROOT / twin_folder / source.name
            note = NOTE.format(source=source.relative_to(ROOT))
            wanted[target] = formatted(note + twin_of(source.read_text()), target)
    return wanted


def stale_regions(*, check: bool) -> list[Path]:
    """The SQL files whose regions differ from the settings. They are written first, since install.sql is made from them."""
    stale = []
    for path in settings_sql.files(ROOT / "postbus" / "sql"):
        text = settings_sql.with_regions(path.read_text())
        if text != path.read_text():
            stale.append(path)
            if not check:
                path.write_text(text)
    return stale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is not as it should be; write nothing")
    check = parser.parse_args().check
    regions = stale_regions(check=check)
    wanted = generated()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    orphaned = [path for folder in TWINS.values() for path in (ROOT / folder).glob("*.py") if path not in wanted]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
    for path in (*regions, *stale):
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(ROOT)}", file=sys.stderr)
    for path in orphaned:
        if not check:
            path.unlink()
        print(f"{'orphaned' if check else 'removed'}: {path.relative_to(ROOT)}", file=sys.stderr)
    stale += [*regions, *orphaned]
    if stale and check:
        print("run: make generate", file=sys.stderr)
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
