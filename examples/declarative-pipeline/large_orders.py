"""The stream orders becomes a view of large orders, which goes into the stream large-orders.

POSTBUS_URL names the database.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct, to_json

spark = SparkSession.active()


@dp.temporary_view
def large_orders() -> DataFrame:
    orders = spark.readStream.format("postbus").options(
        url="env:POSTBUS_URL", stream="orders", dataSchema="customer STRING, quantity INT"
    )
    return orders.load().where("data.quantity >= 10").select("key", "data.customer", "data.quantity")


dp.create_sink("large_orders_stream", format="postbus", options={"url": "env:POSTBUS_URL", "stream": "large-orders"})


@dp.append_flow(target="large_orders_stream")
def publish_large_orders() -> DataFrame:
    large = spark.readStream.table("large_orders")
    return large.select("key", to_json(struct("customer", "quantity")).alias("data"))
