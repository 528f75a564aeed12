"""The documentation is a site without warnings, and every page is found from its first one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import ROOT

DOCS = ROOT / "docs"


def test_the_site_is_built_without_warnings_and_can_be_searched(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "python.html").read_text()
    assert 'id="bus-publish-many"' in page
    # Nothing is loaded from elsewhere.
    assert re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', page) == []
    assert "keep_unread" in (tmp_path / "site" / "searchindex.js").read_text()


def test_each_page_is_listed_for_readers_of_the_site_and_of_the_repository() -> None:
    pages = {
        str(path.relative_to(DOCS).with_suffix(""))
        for path in DOCS.glob("**/*.md")
        if path.name not in ("README.md", "index.md") and path.parent.name != "decisions"
    }
    on_site = set(
        re.findall(r"^(?:how-to|tutorial|explanation|reference)?/?[\w/-]+$", (DOCS / "index.md").read_text(), re.M)
    )
    in_repository = {
        link.removesuffix(".md") for link in re.findall(r"\]\(([\w/-]+\.md)", (DOCS / "README.md").read_text())
    }

    assert pages - on_site == set()
    assert pages - in_repository == set()
