"""Docstrings in Google style as Markdown."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

_SECTIONS: Final = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises"}
_SECTION: Final = re.compile(rf"^({'|'.join(_SECTIONS)}):$", re.M)
_ITEM: Final = re.compile(r"^(\w[\w., ]*):\s*(.*)$")


def as_markdown(documented: Any) -> str:
    """The docstring of something, with its arguments, attributes and errors as lists."""
    text = inspect.getdoc(documented) or ""
    lead, *rest = _SECTION.split(text)
    parts = [_flowing(lead)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{_SECTIONS[title]}**")
        parts.append(_flowing(inspect.cleandoc(body)) if title == "Returns" else _list(body))
    return "\n\n".join(part for part in parts if part)


def _flowing(text: str) -> str:
    """Paragraphs, each on one line; lists and indented code keep their lines."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(_paragraph(each) for each in paragraphs if each.strip())


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return "```python\n" + inspect.cleandoc(text) + "\n```"
    if text.lstrip().startswith("- "):
        return re.sub(r"\n\s+(?!- )", " ", text.strip())
    return " ".join(text.split())


def _list(body: str) -> str:
    items: list[str] = []
    for line in inspect.cleandoc(body).splitlines():
        if (found := _ITEM.match(line)) and not line.startswith(" "):
            items.append(f"- `{found[1]}`: {found[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(f"- {line.strip()}")
    return "\n".join(item.strip() for item in items)
