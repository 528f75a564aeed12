"""The examples of docs/how-to/use-spark.md run, as they are printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import postbus
from tests import servers
from tests.spark.conftest import ROOT


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_how_to_reads_follows_and_writes(spark: Any, spark_server: servers.Server, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "use-spark.md").read_text()
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        url_file = tmp_path / "url"
        url_file.write_text(url)
        for stream in ("orders", "large-orders", "totals", "reminders"):
            bus.create_stream(stream)
        bus.publish_many(
            "orders",
            [postbus.Message(key=f"orders.{n % 3}", data={"customer": f"c{n % 3}", "quantity": n}) for n in range(20)],
        )
        bus.publish("orders", key="orders.0", data={"customer": 7})
        scope = {"checkpoint": str(tmp_path / "one"), "second_checkpoint": str(tmp_path / "two")}
        for snippet in re.findall(r"```python\n(.*?)```", page, re.S):
            # The processes of the tests' Spark were started with another environment.
            exec(snippet.replace("env:POSTBUS_URL", f"file:{url_file}"), scope)

        assert sorted((m.key, m.data["quantity"]) for m in bus.scan("large-orders")) == sorted(
            (f"orders.{n % 3}", n) for n in range(10, 20)
        )
        assert sorted((m.key, m.data["count"]) for m in bus.scan("totals")) == [
            ("orders.0", 8),
            ("orders.1", 7),
            ("orders.2", 6),
        ]
        assert len(bus.list_scheduled("reminders")) == 20
        rows = {row["customer"]: row["sum(data.quantity AS quantity)"] for row in scope["totals"].collect()}  # type: ignore[attr-defined]
        assert rows == {f"c{place}": sum(range(place, 20, 3)) for place in range(3)}
