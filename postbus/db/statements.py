"""The statements by which the library calls the SQL functions. No other text is sent to Postgres on behalf of a user."""

from __future__ import annotations

from typing import Final

CREATE_STREAM: Final = """
select postbus.create_stream($1, partitions => $2, data_type => $3, max_message_bytes => $4, segment_bytes => $5,
    segment_age => $6)
"""
ALTER_STREAM: Final = """
select postbus.alter_stream($1, max_message_bytes => $2, segment_bytes => $3, segment_age => $4)
"""
DROP_STREAM: Final = "select postbus.drop_stream($1)"
STREAM_INFO: Final = "select i.* from postbus.stream_info($1) as i"
LIST_STREAMS: Final = "select i.* from postbus.list_streams($1) as i"
STREAM: Final = "select d.id, d.data_type from postbus.describe_stream($1) as d"


def publish_to(stream_id: int) -> str:
    """The call of a stream's own publisher, which is faster than PUBLISH and gone when the stream is."""
    return f"select postbus_data.publish_{stream_id:d}($1, $2, $3::jsonb)"


PUBLISH: Final = "select postbus.publish($1, $2, $3, $4::jsonb, $5, $6)"
PUBLISH_MANY: Final = "select postbus.publish_many($1, $2, $3, $4, $5, $6)"
READ: Final = """
select m.*
from postbus.read($1, from_seq => $2, to_seq => $3, from_time => $4, to_time => $5, key => $6, key_pattern => $7,
    partition => $8, max_messages => $9, backwards => $10, resume => $11, expected_type => $12) as m
"""
PURGE: Final = "select postbus.purge($1, before_seq => $2, before_time => $3)"

HORIZON: Final = "select postbus.horizon($1)"
HORIZON_HOLDERS: Final = "select h.* from postbus.horizon_holders($1) as h"
MAINTAIN: Final = "select postbus.maintain($1)"
