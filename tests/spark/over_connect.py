"""A client of Spark Connect, in a process of its own: reads, writes and follows streams.

python -m tests.spark.over_connect URL SOURCE TARGET CHECKPOINT
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import postbus.spark


def main(url: str, source: str, target: str, checkpoint: str) -> None:
    # Spark starts a server on this machine, and speaks to it as to one far away.
    spark = SparkSession.builder.config("spark.ui.enabled", "false").remote("local[2]").getOrCreate()
    postbus.spark.register(spark)
    options = {"url": url, "stream": source}
    frame = spark.read.format("postbus").options(**options).load()
    print(type(spark).__module__, frame.count(), frame.where("key = 'k.1'").count(), flush=True)
    frame.where("seq <= 5").select("key", "data").write.format("postbus").options(url=url, stream=target).mode(
        "append"
    ).save()
    query = (
        spark.readStream.format("postbus")
        .options(**options, startingPosition="6")
        .load()
        .select("key", "data")
        .writeStream.format("postbus")
        .options(url=url, stream=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
