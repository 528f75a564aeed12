"""Work in pieces goes on where it was, whichever worker is killed."""

from __future__ import annotations

import multiprocessing
from functools import partial
from pathlib import Path

import pytest

import postbus
from postbus import Message
from tests.faults.run_pieces import PIECES, run_pieces
from tests.waiting import until

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.run_pieces"])


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_work_in_pieces_goes_on_where_a_killed_worker_left_it(own_url: str, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lines"

    def lines(word: str) -> list[list[int]]:
        found = path.read_text().splitlines() if path.exists() else []
        return [[int(part) for part in line.split()[1:]] for line in found if line.startswith(f"{word} ")]

    def has_done(count: int) -> bool:
        return len(lines("piece")) >= count

    with postbus.connect(own_url) as bus:
        bus.create_stream("orders", partitions=4)
        consumer = bus.create_consumer("orders", "c", order="none", ack_wait=0.5, max_deliver=10)
        bus.publish_many("orders", [Message(data=number) for number in range(10)])
        for kill_at in (30, 90, None):
            arguments = (own_url, "orders", kind, path, 0.01, {"concurrency": 4})
            process = _processes.Process(target=run_pieces, args=arguments, daemon=True)
            process.start()
            try:
                if kill_at is None:
                    until(lambda: len({number for (number,) in lines("through")}) == 10, "all are through")
                    until(lambda: consumer.stats().backlog == 0, "all are acked")
                else:
                    until(partial(has_done, kill_at), f"{kill_at} pieces")
            finally:
                process.kill()
                process.join()

    for message in range(10):
        done = [piece for number, piece, _ in lines("piece") if number == message]
        assert set(done) == set(range(PIECES))
        assert done == sorted(done), "no piece is done again but the one in hand"
        assert len(done) <= PIECES + 2, "at most one for each kill"
