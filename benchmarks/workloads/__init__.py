"""One workload per question. To add one: a file here with a WORKLOAD, and its line below."""

from __future__ import annotations

from typing import Final

from benchmarks.workloads import publish_batches, publish_depth, publish_single, publish_streams, read_pages, receive
from benchmarks.workloads.base import Bench, Workload

__all__ = ["WORKLOADS", "Bench", "Workload"]

WORKLOADS: Final = {
    workload.name: workload
    for workload in (
        publish_batches.WORKLOAD,
        publish_single.WORKLOAD,
        publish_depth.WORKLOAD,
        publish_streams.WORKLOAD,
        read_pages.WORKLOAD,
        receive.WORKLOAD,
    )
}
