"""The release script, in a repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import postbus
from tools import release

NEXT = "999.0.0"
TAKEN = (release.VERSION, release.CHANGELOG, release.INSTALL)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of this repository that a release reads, committed."""
    for variable in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(variable, "Somebody")
    for variable in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(variable, "somebody@example.com")
    for path in TAKEN:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / path, tmp_path / path)
    (tmp_path / release.CHANGELOG).write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n")
    (tmp_path / release.RELEASES).mkdir(parents=True)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def refusal(root: Path, version: str) -> str:
    with pytest.raises(SystemExit) as refused:
        release.main([version, "--dry-run"], root=root)
    return str(refused.value)


def test_a_dry_run_says_what_it_would_do_and_does_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = git(repository, "rev-parse", "HEAD")

    release.main([NEXT, "--dry-run"], root=repository)

    assert capsys.readouterr().out.splitlines() == [
        "would write postbus/__init__.py",
        "would write CHANGELOG.md",
        f"would write tests/releases/{NEXT}.sql",
        f'would commit "release: {NEXT}"',
        f"would tag v{NEXT}",
    ]
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "tag", "--list") == ""


def test_a_release_raises_the_version_dates_the_changelog_keeps_the_install_and_tags(repository: Path) -> None:
    release.main([NEXT], root=repository)

    assert f'__version__ = "{NEXT}"\n' in (repository / release.VERSION).read_text()
    assert f"## [Unreleased]\n\n## [{NEXT}] - 2" in (repository / release.CHANGELOG).read_text()
    kept = repository / release.RELEASES / f"{NEXT}.sql"
    assert kept.read_bytes() == (repository / release.INSTALL).read_bytes()
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "describe", "--exact-match") == f"v{NEXT}\n"


def test_a_dirty_tree_is_refused(repository: Path) -> None:
    (repository / "new").touch()

    assert "not committed" in refusal(repository, NEXT)


@pytest.mark.parametrize(
    ("version", "why"),
    [("1.0", "is not a version"), (postbus.__version__, "is not higher"), ("0.0.1", "is not higher")],
)
def test_a_version_that_is_not_the_next_is_refused(repository: Path, version: str, why: str) -> None:
    assert why in refusal(repository, version)


def test_a_version_that_is_tagged_is_refused(repository: Path) -> None:
    git(repository, "tag", f"v{NEXT}")

    assert "exists already" in refusal(repository, NEXT)


def test_a_changelog_with_nothing_new_is_refused(repository: Path) -> None:
    (repository / release.CHANGELOG).write_text("# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-16\n")
    git(repository, "commit", "--quiet", "--all", "--message", "empty")

    assert "nothing under Unreleased" in refusal(repository, NEXT)


def test_the_changelog_has_a_place_for_what_is_new() -> None:
    assert "\n## [Unreleased]\n" in (release.ROOT / release.CHANGELOG).read_text()
