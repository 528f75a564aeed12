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

CREATE_STREAM: Final = """
select postbus.create_stream($1, partitions => $2, data_type => $3, max_message_bytes => $4, segment_bytes => $5,
    segment_age => $6, retain_up_to => $7, retain_at_least => $8, max_messages => $9, max_storage => $10, until_acked => $11,
    when_full => $12, dedup_window => $13, one_message_per_key => $14, process_unmodified => $15)
"""
ALTER_STREAM: Final = """
select postbus.alter_stream($1, partitions => $2, max_message_bytes => $3, segment_bytes => $4, segment_age => $5,
    retain_up_to => $6, retain_at_least => $7, max_messages => $8, max_storage => $9, until_acked => $10, when_full => $11,
    dedup_window => $12, process_unmodified => $13, unset => $14)
"""
DROP_STREAM: Final = "select postbus.drop_stream($1)"
STREAM_INFO: Final = "select i.* from postbus.stream_info($1) as i"
LIST_STREAMS: Final = "select i.* from postbus.list_streams($1) as i"
OVERVIEW: Final = "select o.* from postbus.overview($1, sizes => $2) as o"
CONSUMER_OVERVIEW: Final = "select o.* from postbus.consumer_overview($1) as o"
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
DELETE_KEY: Final = "select postbus.delete_key($1, $2)"
STATE: Final = """
select m.*
from postbus.state($1, key => $2, key_pattern => $3, after_key => $4, max_messages => $5, expected_type => $6) as m
"""
LIST_SCHEDULED: Final = """
select s.*
from postbus.list_scheduled($1, key_pattern => $2, after_at => $3, after_id => $4, max_messages => $5) as s
"""
CANCEL: Final = "select postbus.cancel($1, $2)"
RESCHEDULE: Final = "select postbus.reschedule($1, $2, $3)"
READ: Final = """
select m.*
from postbus.read($1, from_seq => $2, to_seq => $3, from_time => $4, to_time => $5, key => $6, key_pattern => $7,
    partition => $8, max_messages => $9, backwards => $10, resume => $11, expected_type => $12) as m
"""
PURGE: Final = "select postbus.purge($1, before_seq => $2, before_time => $3, everything => $4)"

HORIZON: Final = "select postbus.horizon($1)"
HORIZON_HOLDERS: Final = "select h.* from postbus.horizon_holders($1) as h"
MAINTAIN: Final = "select postbus.maintain($1)"

CREATE_CONSUMER: Final = """
select postbus.create_consumer($1, $2, ordering => $3, ack_wait => $4, max_ack_pending => $5, max_deliver => $6,
    backoff => $7::text[]::interval[], backoff_factor => $8, backoff_cap => $9, backoff_jitter => $10, retain_dead => $11,
    max_per_key => $12, max_waiting => $13, on_dead => $14, filter_key_pattern => $15, filter_headers => $16::jsonb,
    filter_headers_not => $17::jsonb, filter_data => $18, on_expired => $19, keep_unread => $20, expire_after => $21,
    keep_history => $22, start => $23, from_seq => $24, from_time => $25)
"""
ALTER_CONSUMER: Final = """
select postbus.alter_consumer($1, $2, ack_wait => $3, max_ack_pending => $4, max_deliver => $5,
    backoff => $6::text[]::interval[], backoff_factor => $7, backoff_cap => $8, backoff_jitter => $9, retain_dead => $10,
    max_per_key => $11, max_waiting => $12, on_dead => $13, filter_key_pattern => $14, filter_headers => $15::jsonb,
    filter_headers_not => $16::jsonb, filter_data => $17, on_expired => $18, keep_unread => $19, expire_after => $20,
    keep_history => $21, unset => $22)
"""
CREATE_GROUP: Final = """
select postbus.create_group($1, $2, keep_unread => $3, expire_after => $4, start => $5, from_seq => $6, from_time => $7)
"""
CLAIM: Final = "select c.* from postbus.claim($1, $2, max_messages => $3, lease => $4, worker => $5) as c"
# What is given without a lease is given for good, so this one waits for its flush. With a lease, it commits the ranges before.
CONSUME: Final = "select b.* from postbus_data.ack_and_receive($1, $2, $3, $4, $5, $6, true) as b"
FETCH: Final = """
select m.*
from unnest($2::bigint[], $3::bigint[], $4::bigint[]) with ordinality as c (partition, from_seq, to_seq, place)
cross join lateral postbus.fetch($1, c.partition::integer, c.from_seq, c.to_seq, $5) as m
order by c.place, m.seq
"""
COMMIT: Final = "select postbus.commit($1, $2, $3, to_seq => $4)"
RELEASE: Final = "select postbus.release($1, $2, $3)"
JOIN_GROUP: Final = "select postbus.join_group($1, $2, $3, session => $4)"
LEAVE_GROUP: Final = "select postbus.leave_group($1, $2, $3)"
DROP_CONSUMER: Final = "select postbus.drop_consumer($1, $2)"
CONSUMER_INFO: Final = "select i.* from postbus.consumer_info($1, $2) as i"
LIST_CONSUMERS: Final = "select i.* from postbus.list_consumers($1) as i"
PAUSE: Final = "select postbus.pause($1, $2)"
RESUME: Final = "select postbus.resume($1, $2)"
SEEK: Final = "select postbus.seek($1, $2, start => $3, from_seq => $4, from_time => $5)"

# A claim need not wait for its flush: losing it in a crash means a redelivery, which at least once allows. Only a statement that
# is a transaction of its own may say so; a function that did would take the durability of the caller's other writes with it.
RECEIVE: Final = """
select b.*
from (select set_config('synchronous_commit', 'off', true)) as s
cross join lateral postbus_data.ack_and_receive($1, $2, $3, $4, $5, $6, false) as b
"""
# The ack has to be durable, so this one waits for its flush: one round trip and one commit where two of each would be needed.
ACK_AND_RECEIVE: Final = "select b.* from postbus_data.ack_and_receive($1, $2, $3, $4, $5, $6, false) as b"
# All that was committed before is on disk when this is.
FLUSH: Final = "select pg_logical_emit_message(true, 'postbus', '')"


def receive_from(stream_id: int, statement: str) -> str:
    """RECEIVE or ACK_AND_RECEIVE by a stream's own function, which is faster, and gone when the stream is."""
    return statement.replace("postbus_data.ack_and_receive(", f"postbus_data.ack_and_receive_{stream_id:d}(")


def in_any_session(statement: str) -> str:
    """The same statement where the session is not the library's own, and lacks its settings."""
    return re.sub(r"postbus_data\.ack_and_receive(_\d+)?\(", "postbus_data.ack_and_receive_in_any_session(", statement)


RECEIVE_IN_TRANSACTION: Final = in_any_session(ACK_AND_RECEIVE)
ACK: Final = "select postbus.ack($1, $2, $3)"
NACK: Final = "select postbus.nack($1, $2, $3, delay => $4, reason => $5, untried => $6)"
EXTEND: Final = "select postbus.extend($1, $2, $3, ack_wait => $4, shorten => $5)"
TERMINATE: Final = "select postbus.terminate($1, $2, $3, reason => $4)"
SWEEP: Final = "select postbus.sweep($1)"
WAITER: Final = "select w.consumer_id, w.stream_id from postbus_data.waiter($1, $2) as w"
PULSE: Final = "select p.* from postbus_data.stream_horizons($1, $2) as p"
PULSE_OF_CONSUMERS: Final = "select p.wake, p.next_seconds from postbus_data.consumers_to_wake($1) as p"
BACKLOG: Final = "select postbus.backlog($1, $2)"
PUBLISH_RATE: Final = "select postbus.publish_rate($1)"
STATS: Final = "select s.* from postbus.stats($1, $2) as s"
PEEK: Final = """
select p.* from postbus.peek($1, $2, state => $3, key_pattern => $4, after_seq => $5, max_messages => $6) as p
"""
DEAD_LETTERS: Final = """
select d.*
from postbus.dead_letters($1, $2, seqs => $3, key_pattern => $4, reason_like => $5, after_seq => $6, max_messages => $7) as d
"""
REPLAY: Final = """
select r.replayed, r.next_resume
from postbus.replay($1, $2, from_seq => $3, to_seq => $4, from_time => $5, to_time => $6, key_pattern => $7,
    max_messages => $8, resume => $9) as r
"""
HISTORY: Final = "select h.* from postbus.history($1, $2, outcome => $3, before_time => $4, max_messages => $5) as h"
DISCARD: Final = "select postbus.discard($1, $2, seqs => $3, key_pattern => $4, reason_like => $5)"
REDRIVE: Final = """
select postbus.redrive($1, $2, seqs => $3, key_pattern => $4, reason_like => $5, max_messages => $6, to_stream => $7)
"""

LIST_PIPELINES: Final = "select p.* from postbus.list_pipelines() as p"
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
