"""One workload per question. To add one: a file here with a WORKLOAD, and its line below."""

from __future__ import annotations

from typing import Final

from benchmarks.workloads import (
    backfill,
    drops,
    filters,
    groups,
    held_snapshot,
    idle,
    keep_up,
    key_order,
    lake_archive,
    lake_tiers,
    latency,
    publish_batches,
    publish_consumers,
    publish_depth,
    publish_single,
    publish_streams,
    queue_steady,
    read_pages,
    receive,
    receive_depth,
    send_file,
    server_batches,
    server_latency,
    server_polls,
    server_single,
    source,
    spark_memory,
    spark_micro_batch,
    spark_read,
    spark_report,
    spark_transform,
    spark_write,
    stats_at_size,
    workers,
)
from benchmarks.workloads.base import Bench, Workload

__all__ = ["WORKLOADS", "Bench", "Workload"]

WORKLOADS: Final = {
    workload.name: workload
    for workload in (
        publish_batches.WORKLOAD,
        publish_single.WORKLOAD,
        publish_depth.WORKLOAD,
        publish_streams.WORKLOAD,
        publish_consumers.WORKLOAD,
        read_pages.WORKLOAD,
        receive.WORKLOAD,
        receive_depth.WORKLOAD,
        keep_up.WORKLOAD,
        held_snapshot.WORKLOAD,
        key_order.WORKLOAD,
        filters.WORKLOAD,
        workers.WORKLOAD,
        groups.WORKLOAD,
        latency.WORKLOAD,
        idle.WORKLOAD,
        drops.WORKLOAD,
        queue_steady.WORKLOAD,
        stats_at_size.WORKLOAD,
        send_file.WORKLOAD,
        server_batches.WORKLOAD,
        server_single.WORKLOAD,
        server_latency.WORKLOAD,
        server_polls.WORKLOAD,
        source.WORKLOAD,
        spark_read.WORKLOAD,
        spark_write.WORKLOAD,
        spark_micro_batch.WORKLOAD,
        spark_memory.WORKLOAD,
        spark_transform.WORKLOAD,
        lake_archive.WORKLOAD,
        lake_tiers.WORKLOAD,
        spark_report.WORKLOAD,
        backfill.WORKLOAD,
    )
}
