"""The dashboard and the alerts ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from postbus.server.metric_names import ALL
from tests.docs.test_snippets import ROOT

RULES = ROOT / "deploy" / "prometheus-alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
KNOWN = {
    f"{name}{ending}"
    for group in ALL
    for name in group.texts
    for ending in {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}[group.kind]
}


@pytest.mark.parametrize("file", [RULES, DASHBOARD], ids=lambda file: file.name)
def test_metrics_of_alerts_and_dashboard_exist(file: Path) -> None:
    named = set(re.findall(r"postbus_\w+", file.read_text()))

    assert named - KNOWN == set()
    assert len(named) > 8


def test_labels_of_the_dashboard_exist() -> None:
    labels = {name: set(group.labels) for group in ALL for name in group.texts}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            metric = max((name for name in labels if name in target["expr"]), key=len)
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels[metric], panel["title"]


def test_every_alert_is_told_of_on_the_page() -> None:
    page = (ROOT / "docs" / "how-to" / "watch-the-bus.md").read_text()

    assert [name for name in re.findall(r"alert: (\w+)", RULES.read_text()) if f"`{name}`" not in page] == []


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (on Debian: apt-get install prometheus)"
)
def test_prometheus_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
