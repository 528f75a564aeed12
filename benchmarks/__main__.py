"""python -m benchmarks [WORKLOAD…] [--rounds N] [--quick] [--list]."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import Final

from benchmarks import machine, records, report, server
from benchmarks.progress import say
from benchmarks.results import WorkloadResult
from benchmarks.runner import run
from benchmarks.workloads import WORKLOADS, Bench

_QUIET_LOAD: Final = 0.5


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a positive number')
    return int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Postbus; see benchmarks/README.md."
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="which to run; all if none is named")
    parser.add_argument(
        "--rounds",
        type=_positive,
        metavar="N",
        help="rounds of each contender (default: 5, fewer where one takes long)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not how fast it is")
    parser.add_argument("--list", action="store_true", help="say which workloads there are")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"there is no workload {', '.join(unknown)}; choose from {', '.join(WORKLOADS)}")
    return arguments


def main() -> int:
    arguments = _arguments()
    if arguments.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name:<18}  {workload.question}")
        return 0
    names: list[str] = arguments.workloads or list(WORKLOADS)
    started_at = datetime.now(UTC)
    options = {"workloads": names, "rounds": arguments.rounds, "quick": arguments.quick}
    results: list[WorkloadResult] = []
    with server.running() as server_url:
        bench = Bench(server_url, rounds=arguments.rounds, quick=arguments.quick)
        facts = machine.facts(server_url)
        if facts["load_average_before"][0] > _QUIET_LOAD:
            say(f"this machine is busy (load {facts['load_average_before'][0]:.1f}): do not trust what follows")
        for name in names:
            results.append(run(WORKLOADS[name], bench))
            print(report.table(results[-1]), flush=True)
            # After each, so that a workload that fails does not take the others' results with it.
            path = records.write(started_at, facts, options, results)
    say(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
