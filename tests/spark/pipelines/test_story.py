"""The story of examples/shop runs, and says what its steps did."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import postbus
from tests import servers
from tests.spark.conftest import ROOT


@pytest.mark.timeout(600)
def test_the_shop_goes_from_files_and_a_table_to_invoices_and_back_to_what_retention_dropped(
    spark: Any, spark_server: servers.Server, tmp_path: Path
) -> None:
    story = runpy.run_path(str(ROOT / "examples" / "shop" / "story.py"))
    said: list[str] = []

    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        with story["stage"](bus):
            story["tell"](bus, spark, tmp_path, said.append)
        assert bus.overview() == []

    assert said[0] == "1. 2 files: 6 orders published, 1 aside in orders-bad"
    assert "several" in said[1]
    assert said[2:4] == ["2. the old table: 3 orders published", "3. 9 orders read, 7 invoices published"]
    assert sorted(said[4:-2]) == sorted(
        f"4. billing: {customer} pays {amount} for invoices.{customer}.{order}"
        for order, customer, amount in (
            (1001, "ada", "80.00"),
            (1002, "grace", "119.00"),
            (2001, "ada", "34.00"),
            (2002, "grace", "60.00"),
            (2003, "ada", "10.47"),
            (2005, "grace", "170.00"),
            (2006, "barbara", "129.00"),
        )
    )
    assert said[-2] == "5. 9 orders archived, 0 problems; retention has left 3 in the log"
    assert said[-1].startswith("6. 6 orders that the log has lost, published once more: orders.ada.2001, ")
