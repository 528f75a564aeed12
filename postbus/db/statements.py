"""The statements by which the library calls the SQL functions. No other text is sent to Postgres on behalf of a user."""

from __future__ import annotations

import re
from typing import Final

# Settings of the library's own sessions. Streams can only be read under READ COMMITTED, whatever the database's default. The
# others are those that public functions set for themselves, at a price: each statement has one plan, made once, and names mean
# what they say. Compiling a plan takes longer than running it, and before Postgres 18 a plan without another choice than what is
# switched off looks expensive enough to compile.
SESSION_SETTINGS: Final = """
set default_transaction_isolation = 'read committed';
set enable_seqscan = off;
set enable_bitmapscan = off;
set plan_cache_mode = force_generic_plan;
set jit = off;
set search_path = pg_catalog, pg_temp
"""

STREAM_INFO: Final = "select i.* from postbus.stream_info($1) as i"
OVERVIEW: Final = "select o.* from postbus.overview($1, sizes => $2) as o"
STREAM: Final = "select d.id, d.data_type from postbus.describe_stream($1) as d"


def publish_to(stream_id: int) -> str:
    """The call of a stream's own publisher, which is faster than PUBLISH and gone when the stream is."""
    return f"select postbus_data.publish_{stream_id:d}($1, $2, $3::jsonb)"


def publish_many_to(stream_id: int) -> str:
    """The same for several messages."""
    return f"select postbus_data.publish_many_{stream_id:d}($1, $2, $3)"


# A delay is counted by the server's clock, as are all times of delivery.
_TIME: Final = "coalesce($8, clock_timestamp() + $9::interval)"
PUBLISH: Final = f"""
select postbus.publish($1, $2, $3, $4::jsonb, $5, $6, ttl => $7, deliver_at => {_TIME}, dedup_id => $10)
"""
PUBLISH_MANY: Final = f"""
select postbus.publish_many($1, $2, $3, $4, $5, $6, ttl => $7, deliver_at => {_TIME}, dedup_ids => $10)
"""
STATE: Final = """
select m.*
from postbus.state($1, key => $2, key_pattern => $3, after_key => $4, max_messages => $5, expected_type => $6) as m
"""
READ: Final = """
select m.*
from postbus.read($1, from_seq => $2, to_seq => $3, from_time => $4, to_time => $5, key => $6, key_pattern => $7,
    partition => $8, max_messages => $9, backwards => $10, resume => $11, expected_type => $12) as m
"""


# What is given without a lease is given for good, so this one waits for its flush. With a lease, it commits the ranges before.
CONSUME: Final = "select b.* from postbus_data.serve($1, $2, $3, $4, $5, $6, true) as b"
CONSUMER_INFO: Final = "select i.* from postbus.consumer_info($1, $2) as i"
LIST_CONSUMERS: Final = "select i.* from postbus.list_consumers($1) as i"

# A claim need not wait for its flush: losing it in a crash means a redelivery, which at least once allows. Only a statement that
# is a transaction of its own may say so; a function that did would take the durability of the caller's other writes with it.
RECEIVE: Final = """
select b.*
from (select set_config('synchronous_commit', 'off', true)) as s
cross join lateral postbus_data.serve($1, $2, $3, $4, $5, $6, false) as b
"""
# The ack has to be durable, so this one waits for its flush: one round trip and one commit where two of each would be needed.
ACK_AND_RECEIVE: Final = "select b.* from postbus_data.serve($1, $2, $3, $4, $5, $6, false) as b"
# All that was committed before is on disk when this is.
FLUSH: Final = "select pg_logical_emit_message(true, 'postbus', '')"


def receive_from(stream_id: int, statement: str) -> str:
    """RECEIVE or ACK_AND_RECEIVE by a stream's own function, which is faster, and gone when the stream is."""
    return statement.replace("postbus_data.serve(", f"postbus_data.serve_{stream_id:d}(")


def in_any_session(statement: str) -> str:
    """The same statement where the session is not the library's own, and lacks its settings."""
    return re.sub(r"postbus_data\.serve(_\d+)?\(", "postbus_data.receive_batches(", statement)


RECEIVE_IN_TRANSACTION: Final = in_any_session(ACK_AND_RECEIVE)
WAITER: Final = "select c.id, c.stream_id from postbus_data.find_consumer($1, $2) as c"
PULSE: Final = "select p.* from postbus_data.pulse($1, $2) as p"
PULSE_OF_CONSUMERS: Final = "select p.wake, p.next_seconds from postbus_data.pulse_of_consumers($1) as p"
STATS: Final = "select s.* from postbus.stats($1, $2) as s"
DEAD_LETTERS: Final = """
select d.*
from postbus.dead_letters($1, $2, seqs => $3, key_pattern => $4, reason_like => $5, after_seq => $6, max_messages => $7) as d
"""

BEGIN_PIPELINE: Final = "select postbus_data.begin_pipeline($1, $2, $3, $4, $5::jsonb)"
NOTE_PIPELINE: Final = "select postbus_data.note_pipeline($1, $2::uuid, $3, $4, $5)"
END_PIPELINE: Final = "select postbus_data.end_pipeline($1, $2::uuid, $3, $4)"
OPEN_ARCHIVE: Final = "select postbus_data.open_archive($1, $2, $3, $4)"
ARCHIVE_FORMAT: Final = "select postbus_data.archive_format($1)"
ARCHIVE_STATE: Final = "select a.* from postbus_data.archive_state($1) as a"
ARCHIVE_FILES: Final = "select f.* from postbus_data.archive_files($1, $2, $3, $4, $5) as f"
ARCHIVE_PARTS: Final = "select p.* from postbus_data.archive_parts($1) as p"
ARCHIVE_STEPS: Final = "select s.* from postbus_data.archive_steps($1) as s"
COMMIT_ARCHIVE: Final = "select postbus_data.commit_archive($1, $2, $3, $4, $5::jsonb, $6)"
ARCHIVE_START: Final = "select postbus_data.archive_start($1, $2, $3)"
PLAN_PIPELINE: Final = "select postbus_data.plan_pipeline($1, $2::uuid, $3::jsonb, $4)"
SPARK_WRITTEN: Final = "select w.* from postbus_data.spark_written($1, $2) as w"
REPLAY_COPIES: Final = """
select postbus_data.replay_copies($1, $2::uuid, $3, $4, $5, $6::bigint[]::integer[], $7, $8::text[]::timestamptz[], $9, $10, $11,
    $12)
"""
PIPELINE_POSITION: Final = "select postbus_data.pipeline_position($1)"
REPLACE_FILES: Final = "select postbus_data.replace_files($1, $2, $3::jsonb)"
EXPIRE_ARCHIVE: Final = "select postbus_data.expire_archive($1, $2)"
REMOVED_FILES: Final = "select f.* from postbus_data.removed_files($1, $2) as f"
FORGET_FILES: Final = "select postbus_data.forget_files($1, $2)"
ARCHIVE_FOLDERS: Final = "select f from postbus_data.archive_folders($1) as f"
STREAM_LIMITS: Final = "select i.data_type, i.max_message_bytes from postbus.stream_info($1) as i"
OPEN_ASIDE: Final = "select postbus_data.open_aside($1)"
TAKE_FILES: Final = "select f.* from postbus_data.take_files($1, $2::uuid, $3, $4::jsonb, $5, $6) as f"
FINISH_FILES: Final = "select postbus_data.finish_files($1, $2::uuid, $3, $4, $5)"
INGESTED_FILES: Final = "select f.path from postbus.ingested_files($1) as f where f.state = $2"
PLAN_RANGES: Final = "select postbus_data.plan_ranges($1, $2::uuid, $3, $4::jsonb)"
OPEN_SNAPSHOT: Final = "select postbus_data.open_snapshot($1, $2::uuid, $3::pg_snapshot, $4::pg_lsn)"
CLOSE_SNAPSHOT: Final = "select postbus_data.close_snapshot($1)"
BEGIN_RANGE: Final = "select r.* from postbus_data.begin_range($1, $2, $3) as r"
END_RANGE: Final = "select postbus_data.end_range($1, $2, $3, $4, $5)"
COPY_RANGE: Final = "select postbus_data.copy_range($1, $2, $3, $4, $5)"
RANGE_COUNTS: Final = "select c.* from postbus_data.range_counts($1) as c"
# How many, as nobody wants their seqs.
PUBLISH_ROWS: Final = "select cardinality(postbus.publish_many($1, $2, $3, bytes => $4))"
