"""Results as JSON, to compare with those of another day."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.results import ComparisonResult, WorkloadResult, spread

FOLDER: Final = Path(__file__).parent / "results"


def write(
    started_at: datetime, machine: dict[str, Any], options: dict[str, Any], results: Sequence[WorkloadResult]
) -> Path:
    """Write what is known so far; called again as more comes in, it writes the same file anew."""
    path = FOLDER / f"{started_at:%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(exist_ok=True)
    record = {
        "started_at": started_at.isoformat(),
        "options": options,
        "machine": machine,
        "workloads": [_workload(result) for result in results],
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def _workload(result: WorkloadResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "question": result.question,
        "comparisons": [_comparison(comparison) for comparison in result.comparisons],
    }


def _comparison(result: ComparisonResult) -> dict[str, Any]:
    return {
        "name": result.name,
        result.quantity.name: {name: _values(values) for name, values in result.figures.items()},
        "ratios": {ratio.name: _values(result.ratio_by_round(ratio)) for ratio in result.ratios},
        "stolen": result.stolen,
    }


def _values(values: list[float]) -> dict[str, Any]:
    return {**asdict(spread(values)), "rounds": values}
