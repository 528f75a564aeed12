"""The commands and examples of docs/how-to/transform-and-materialize.md run, as they are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import postbus
from tests import servers
from tests.spark.pipelines.how_to import run_how_to
from tests.spark.pipelines.test_materialize import of_table


def test_the_how_to_makes_streams_and_tables(shared_spark: Any, spark_server: servers.Server, tmp_path: Path) -> None:
    places = {"/checkpoints": tmp_path / "checkpoints", "/tables": tmp_path / "tables"}
    with servers.database(spark_server.url) as url, postbus.connect(url) as bus:
        page = run_how_to("transform-and-materialize", url, places=places, spark=shared_spark)

        (large,) = bus.scan("large-orders")
        assert (large.key, large.data) == ("customers.ada", {"customer": "ada", "quantity": 40})
        assert [message.key for message in bus.scan("bad-orders")] == ["orders.3"]
        totals = {message.key: message.data for message in bus.scan("totals")}
        assert totals == {"ada": {"quantity": 40}, "bob": {"quantity": 2}}
        assert {key: row["cents"] for key, row in of_table(url, "prices").items()} == {"sku.7": 890, "sku.8": 100}
        versions = page.scope["read_snapshot"](shared_spark, f"{tmp_path}/tables/prices").orderBy("_seq").collect()
        assert [(row["_key"], row["cents"], row["is_current"]) for row in versions] == [
            ("sku.7", 990, False),
            ("sku.8", 100, True),
            ("sku.7", 890, True),
        ]
        assert {each.state for each in bus.list_pipelines()} == {"done"}
