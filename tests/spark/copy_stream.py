"""A driver of its own, to be killed: copies one stream to another until it is told that there is no more.

python -m tests.spark.copy_stream URL SOURCE TARGET CHECKPOINT MASTER MESSAGES_PER_TRIGGER
"""

from __future__ import annotations

import sys

import postbus.spark


def main(url: str, source: str, target: str, checkpoint: str, master: str, per_trigger: str) -> None:
    spark = postbus.spark.session(
        master=master,
        settings={
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.task.maxFailures": "8",
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        spark.readStream.format("postbus")
        .options(url=url, stream=source, maxMessagesPerTrigger=per_trigger, minPartitions=3)
        .load()
        .select("key", "data")
        .writeStream.format("postbus")
        .options(url=url, stream=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()
    print(spark.sparkContext.defaultParallelism, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:7])
