"""Makes a release: the version, the changelog's date, what the release installs, a commit and a tag.

python -m tools.release 0.2.0 [--dry-run]

Nothing is pushed.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
VERSION: Final = Path("postbus/__init__.py")
CHANGELOG: Final = Path("CHANGELOG.md")
INSTALL: Final = Path("postbus/sql/install.sql")
RELEASES: Final = Path("tests/releases")

_VERSION_LINE: Final = re.compile(r'^__version__ = "(?P<version>[^"]+)"$', re.M)
_NUMBERS: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_UNRELEASED: Final = re.compile(r"^## \[Unreleased\]\n(?P<entries>.*?)(?=^## |\Z)", re.M | re.S)


class Refused(Exception):
    """The release cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Release:
    """What a release writes.

    Attributes:
        version: Such as "0.2.0".
        files: The new text of each file, by its path in the repository.
    """

    version: str
    files: dict[Path, str]

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def subject(self) -> str:
        return f"release: {self.version}"


def plan(root: Path, version: str, date: datetime.date) -> Release:
    """The release that would be made of what is in the folder now.

    Raises:
        Refused: The tree is dirty, the version is not higher than the last, or nothing is listed under Unreleased.
    """
    if _git(root, "status", "--porcelain"):
        raise Refused("there are changes that are not committed")
    if f"v{version}" in _git(root, "tag", "--list").splitlines():
        raise Refused(f"the tag v{version} exists already")
    module = (root / VERSION).read_text()
    line = _VERSION_LINE.search(module)
    if line is None:
        raise Refused(f"{VERSION} has no line with the version")
    if _numbers(version) <= _numbers(line["version"]):
        raise Refused(f"{version} is not higher than {line['version']}")
    changelog = (root / CHANGELOG).read_text()
    unreleased = _UNRELEASED.search(changelog)
    if unreleased is None or not unreleased["entries"].strip():
        raise Refused(f"{CHANGELOG} lists nothing under Unreleased")
    heading = f"## [Unreleased]\n\n## [{version}] - {date.isoformat()}\n"
    start = unreleased.start()
    return Release(
        version,
        {
            VERSION: _VERSION_LINE.sub(f'__version__ = "{version}"', module),
            CHANGELOG: changelog[:start] + changelog[start:].replace("## [Unreleased]\n", heading, 1),
            RELEASES / f"{version}.sql": (root / INSTALL).read_text(),
        },
    )


def make(root: Path, release: Release) -> None:
    """Write the files, commit them and tag the commit."""
    for path, text in release.files.items():
        (root / path).write_text(text)
    names = [str(path) for path in release.files]
    _git(root, "add", "--", *names)
    _git(root, "commit", "--quiet", "--message", release.subject, "--", *names)
    _git(root, "tag", "--annotate", release.tag, "--message", f"Postbus {release.version}")


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.fullmatch(version)
    if found is None:
        raise Refused(f'"{version}" is not a version such as 0.2.0')
    return tuple(map(int, found.groups()))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def main(arguments: list[str] | None = None, *, root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Make a release.")
    parser.add_argument("version", help="the new version, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    given = parser.parse_args(arguments)
    try:
        release = plan(root, given.version, datetime.datetime.now(datetime.UTC).date())
        if not given.dry_run:
            make(root, release)
    except Refused as refused:
        sys.exit(f"error: {refused}")
    would = "would write" if given.dry_run else "wrote"
    for path in release.files:
        print(f"{would} {path}")
    print(f'{"would commit" if given.dry_run else "committed"} "{release.subject}"')
    print(f"{'would tag' if given.dry_run else 'tagged'} {release.tag}")
    if not given.dry_run:
        print(f"next: git push origin HEAD {release.tag}")


if __name__ == "__main__":
    main()
