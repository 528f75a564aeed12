"""The documentation as a site: `make docs` writes it to build/docs. It needs no network, neither to build nor to read."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postbus import __version__  # noqa: E402

project = "Postbus"
author = "The Postbus authors"
copyright = author  # noqa: A001
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
# The list of pages for those who read them in the repository; the site has index.md and its own navigation.
exclude_patterns = ["README.md"]
myst_enable_extensions = ["colon_fence", "tasklist"]
myst_heading_anchors = 4
# Prompts and answers are not copied.
copybutton_prompt_text = "$ "
# `psql` and the shell's sessions have output that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"Postbus {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")


def without_links_to_code(app: Sphinx, page: str, text: list[str]) -> None:
    """Leave links to files of the repository as their text: the site has no such files."""
    folder = (ROOT / "docs" / page).parent
    text[0] = LINK.sub(lambda link: link[0] if is_page(folder / link[2].partition("#")[0]) else link[1], text[0])


def is_page(target: Path) -> bool:
    return target.resolve().is_relative_to(ROOT / "docs")


def setup(app: Sphinx) -> None:
    app.connect("source-read", without_links_to_code)
