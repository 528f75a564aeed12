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
select postbus.publish($1, $2, $3, $4::jsonb, $5, $6, ttl => $7, deliver_at => {_TIME}, dedup_id => $10, priority => $11)
"""
PUBLISH_MANY: Final = f"""
select postbus.publish_many($1, $2, $3, $4, $5, $6, ttl => $7, deliver_at => {_TIME}, dedup_ids => $10,
    priorities => $11::bigint[]::integer[])
"""


# What is given without a lease is given for good, so this one waits for its flush. With a lease, it commits the ranges before.
CONSUME: Final = "select b.* from postbus_data.ack_and_receive($1, $2, $3, $4, $5, $6, true) as b"

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


def ack_in(stream_id: int) -> str:
    """An ack by a stream's own function, which has no caller to look up."""
    return f"select postbus_data.ack_{stream_id:d}($1, $2, $3::text[])"


def in_any_session(statement: str) -> str:
    """The same statement where the session is not the library's own, and lacks its settings."""
    statement = re.sub(r"postbus_data\.ack_\d+\(", "postbus.ack(", statement)
    return re.sub(r"postbus_data\.ack_and_receive(_\d+)?\(", "postbus_data.ack_and_receive_in_any_session(", statement)


RECEIVE_IN_TRANSACTION: Final = in_any_session(ACK_AND_RECEIVE)
WAITER: Final = "select w.consumer_id, w.stream_id from postbus_data.waiter($1, $2) as w"
PULSE: Final = "select p.* from postbus_data.stream_horizons($1, $2) as p"
PULSE_OF_CONSUMERS: Final = "select p.wake, p.next_seconds from postbus_data.consumers_to_wake($1) as p"
