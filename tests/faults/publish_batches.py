"""A program to be killed: python -m tests.faults.publish_batches <url> <stream> <batch size>."""

from __future__ import annotations

import itertools
import sys

import postbus


def batch(number: int, size: int) -> list[postbus.Message]:
    return [postbus.Message(key=f"batch.{number}", data=[number, place]) for place in range(size)]


def main(url: str, stream: str, size: int) -> None:
    with postbus.connect(url) as bus:
        for number in itertools.count(1):
            bus.publish_many(stream, batch(number, size))
            print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
