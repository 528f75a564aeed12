"""Options by the names and in the forms of other tools. The help does not list them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

# One name here, others elsewhere or formerly.
_SAME: Final = {
    "--count": "--max-messages",
    "--batch-size": "--max-messages",
    "--limit": "--max-messages",
    "--deliver-in": "--delay",
    "--wait-for": "--wait",
}
_STATES: Final = {"--pending": "delivered"}
_INFINITE: Final = {"--retain-at-least": "36500d"}


def translated(arguments: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """The arguments of a command, with options that it does not know replaced by those that it does.

    Args:
        arguments: What was given.
        known: The command's options, such as "--ack-wait".
    """
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            yield argument
            yield from left
            return
        yield from _one(argument, left, known)


def _one(argument: str, left: Iterator[str], known: Collection[str]) -> Iterator[str]:
    name, is_joined, value = argument.partition("=")
    if not name.startswith("--"):
        yield argument
    elif name not in known and _SAME.get(name) in known:
        yield _SAME[name] + is_joined + value
    elif name == "--ack-wait-ms" and "--ack-wait" in known:
        yield f"--ack-wait={value if is_joined else next(left, '')}ms"
    elif name in _STATES and name not in known and "--state" in known:
        yield f"--state={_STATES[name]}"
    elif value in ("true", "false") and f"--no-{name[2:]}" in known:
        yield name if value == "true" else f"--no-{name[2:]}"
    elif name in _INFINITE and value == "infinite":
        yield f"{name}={_INFINITE[name]}"
    else:
        yield argument
