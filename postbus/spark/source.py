"""The data source that Spark knows as "postbus"."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from postbus.db import session
from postbus.db.arrow import MessageFilter
from postbus.model.errors import InvalidInput
from postbus.spark import compat
from postbus.spark.columns import schema_for
from postbus.spark.errors import without_traceback
from postbus.spark.history import HISTORY, HistoryReader
from postbus.spark.options import WriteOptions, read_options, write_options
from postbus.spark.reader import Reader
from postbus.spark.slices import state_of
from postbus.spark.statements import PATTERN_REGEX
from postbus.spark.stream_reader import StreamReader
from postbus.spark.views import ViewReader, view_schema
from postbus.spark.writer import StreamWriter, Writer, check_columns


class PostbusDataSource(DataSource):
    """Streams of Postbus as DataFrames: `format("postbus")` for read, readStream, write and writeStream.

    **Where.** Options of all four:

    - `url`: the database, `postgresql://user@host/db`. `env:NAME` and `file:PATH` name an environment variable or a file
      that holds it, on the driver and on every executor, so that no password is in plans, logs or the UI. Without it,
      POSTBUS_URL.
    - `stream`: the stream. It has to exist.

    **Columns** when reading: `key` string, `data` string (binary in a bytes stream, a struct with dataSchema), `headers`
    map of strings, `partition` int, `seq` bigint, `published_at` timestamp. A schema of your own may name some of them,
    and only those are fetched; and `size` int, how many bytes data has, without fetching it.

    **Reading.** Options of read and readStream:

    - `startingPosition`: `earliest` (default), `latest`, a seq, a time (`2026-01-31T08:00:00+00:00`; UTC if it has no
      zone), or a seq for each partition (`{"0": 120, "1": 80}`). A streaming query heeds it only without a checkpoint,
      and begins up to a second before a time.
    - `endingPosition` (read): `latest` (default), a seq, which is included, or a time, which is not.
    - `keyPattern`: only messages whose key matches; `*` stands for one token, `>` at the end for one or more.
    - `dataSchema`: `quantity INT, price DOUBLE`, or the JSON of a StructType. `data` is then a struct. A message that
      does not fit has null there, and its text in the column `_corrupt`.
    - `failOnBadData`: `true` fails at such a message instead; `false` is the default.
    - `minPartitions`: so many tasks, or more: one has 1,000,000 messages at most. Without it one for
      every 50,000 messages, up to the number of cores of the driver's machine (2 to 8).
    - `failOnDataLoss`: `true` (default) fails when messages were purged before they were read, or the database went back
      in time (a failover, a restore); `false` goes on and warns.

    - `includeArchive`: `true` reads lake and log as one stream: what `postbus pipeline run archive` has archived from its files,
      which every executor has to reach, and the rest from Postgres. `false` is the default. `maxBytesPerTrigger` bounds only
      what comes from the log.
    - `includePriority`: `true` adds a column `priority`. `false` is the default.

    A message whose time to live is over is read like any other, as `bus.read` does: the log is not changed, and only
    consumers pass over it.

    `read` (read): `messages` (default), or what consumers made of them, as it is now: `deadLetters` (a row for each, with
    `consumer`, `attempts`, `reason`, `died_at`) or `consumerStates` (where each consumer stands, as `postbus.stats` says it:
    a row for each partition and one, with partition null, for the whole). Of all consumers, or of the one that option
    `consumer` names; dead letters also by `keyPattern`. `history` has what became of deliveries to consumers that keep a
    history: a row for each batch that was acked and for each message that failed, with `seqs`, `attempts` (null when all were
    delivered for the first time), `received_at`, `finished_at`, `outcome` and `reason`. `state` is the present version of
    each key, or of those of `keyPattern`, where a stream keeps one message per key.

    Filters on `seq`, `partition`, `key` (equality, prefix) and `published_at` of a batch query are applied by Postgres
    where the session has `spark.sql.python.filterPushdown.enabled` = `true`, and by Spark elsewhere.
    (`postbus.spark.session` sets it.)

    **Following a stream.** Options of readStream:

    - `maxMessagesPerTrigger`: a micro-batch has at most so many messages. Counted by seq, so that one may have fewer.
    - `maxBytesPerTrigger`: about so many bytes, by the average size of the stream's messages.
    - `consumer`: after each micro-batch the query's position is noted as that of this consumer, which is created if need
      be; `postbus.stats` shows its lag. Spark reports a micro-batch when it plans the next one, so it is one behind.

    Every trigger works, AvailableNow too. Between two offsets lie the same messages for ever: publishers that are still
    open are waited for.

    To let retention wait for the query, create the consumer beforehand with keep_unread: `bus.create_consumer("orders",
    "lake", keep_unread=True)`.

    **Writing.** Columns `data` (string, or binary for a bytes stream), `key`, `headers` (map of strings) and `deliver_at`
    (timestamp: a message with one that is not over yet is scheduled, and gets its seq when it is due); all but data may be
    left out or null. Mode `append`. All rows are published in one transaction, in the order of Spark's
    partitions and their rows, or none are. While it runs, readers of the stream see nothing newer.

    A task that is run twice writes once. A streaming query publishes each micro-batch once, also if it was killed and
    restarted from its checkpoint. A batch job that you run again publishes again, unless it has

    - `writerId` and `batchId`: a name of your choice and a number that grows. What the writer published with this batch
      id or a higher one is not published again. In `foreachBatch`: `.option("writerId", "invoices").option("batchId",
      batch_id)`.

    writeStream needs neither; with `writerId` it goes by that name instead of its query's id, and a query with another
    checkpoint cannot use it.
    """

    @classmethod
    def name(cls) -> str:
        return "postbus"

    @without_traceback
    def schema(self) -> StructType | str:
        options = read_options(self.options)
        with session.transaction(options.address.resolve()) as database:
            state = state_of(database, options.stream)
        compat.freeze_imports()
        if options.view != "messages":
            return view_schema(options.view, state.data_type)
        return schema_for(state.data_type, options.data_schema, has_priority=options.include_priority)

    @without_traceback
    def reader(self, schema: StructType) -> Reader | ViewReader | HistoryReader:
        options = read_options(self.options)
        if options.view == "messages":
            return Reader(options, schema)
        return HistoryReader(options, schema) if options.view == HISTORY else ViewReader(options, schema)

    @without_traceback
    def streamReader(self, schema: StructType) -> StreamReader:
        options = read_options(self.options)
        if "endingPosition" in self.options:
            raise InvalidInput("option endingPosition is not one for readStream", "use the trigger AvailableNow")
        if options.view != "messages":
            raise InvalidInput(f"read = {options.view} cannot be followed", "use spark.read")
        regex = None
        if options.key_pattern is not None:
            with session.transaction(options.address.resolve()) as database:
                regex = database.value(PATTERN_REGEX, (options.key_pattern,))
        return StreamReader(options, schema, MessageFilter(key_regex=regex))

    @without_traceback
    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        options, data_type = self._target(schema, overwrite)
        return Writer(options, data_type)

    @without_traceback
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        options, data_type = self._target(schema, overwrite)
        if options.batch_id is not None:
            raise InvalidInput("option batchId is not one for writeStream: Spark counts the batches")
        return StreamWriter(options, data_type)

    def _target(self, schema: StructType, overwrite: bool) -> tuple[WriteOptions, str]:
        options = write_options(self.options)
        if overwrite:
            raise InvalidInput("a stream cannot be overwritten", "use mode append, and postbus.purge to empty it")
        with session.transaction(options.address.resolve()) as database:
            data_type = state_of(database, options.stream).data_type
        compat.freeze_imports()
        check_columns(schema, data_type)
        return options, data_type
