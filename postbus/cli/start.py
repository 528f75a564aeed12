"""Where the `postbus` program begins: without the packages that the command needs, it says how to install them."""

from __future__ import annotations

import sys
from typing import Final

_OF_THE_EXTRA: Final = ("typer", "click")


def run() -> None:
    """Run the command, if it is installed."""
    try:
        from postbus.cli import main
    except ModuleNotFoundError as error:
        if error.name not in _OF_THE_EXTRA:
            raise
        sys.exit("error: the postbus command is not installed; run: pip install 'postbus[cli]'")
    main.run()
