"""Writes docs/reference/metrics.md: every metric of `GET /metrics`."""

from __future__ import annotations

from typing import Final

from postbus.server.metric_names import ALL

_HEAD: Final = """# Metrics

Made from `postbus/server/metric_names.py` by `make generate`; do not edit.

A server has them at `GET /metrics`, in the format of Prometheus. [Alerts that use them](../how-to/watch-the-bus.md#alerts).

Figures of streams and consumers come from Postgres, so each server has the same, and they include what workers do without a
server. Counters of requests and messages are of this server alone.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def reference() -> str:
    """The page."""
    rows = [
        f"| `{name}{'_total' if group.kind == 'counter' else ''}` | {group.kind} | {', '.join(group.labels) or '–'} | {text} |\n"
        for group in ALL
        for name, text in group.texts.items()
    ]
    return _HEAD + "".join(rows)
