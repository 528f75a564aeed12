"""The statements by which the library calls the SQL functions. No other text is sent to Postgres on behalf of a user."""

from __future__ import annotations

from typing import Final

CREATE_STREAM: Final = """
select postbus.create_stream(%s, partitions => %s, data_type => %s, max_message_bytes => %s, segment_bytes => %s,
    segment_age => %s)
"""
ALTER_STREAM: Final = """
select postbus.alter_stream(%s, max_message_bytes => %s, segment_bytes => %s, segment_age => %s)
"""
DROP_STREAM: Final = "select postbus.drop_stream(%s)"
STREAM_INFO: Final = "select i.* from postbus.stream_info(%s) as i"
LIST_STREAMS: Final = "select i.* from postbus.list_streams(%s) as i"
DATA_TYPE: Final = "select i.data_type from postbus.stream_info(%s) as i"

PUBLISH: Final = "select postbus.publish(%s, %s, %s, %s::jsonb, %s, %s)"
PUBLISH_MANY: Final = "select postbus.publish_many(%s, %s, %s, %s, %s, %s)"
READ: Final = """
select m.*
from postbus.read(%s, from_seq => %s, to_seq => %s, from_time => %s, to_time => %s, key => %s, key_pattern => %s,
    partition => %s, max_messages => %s, backwards => %s, resume => %s, expected_type => %s) as m
"""
PURGE: Final = "select postbus.purge(%s, before_seq => %s, before_time => %s)"

HORIZON: Final = "select postbus.horizon(%s)"
HORIZON_HOLDERS: Final = "select h.* from postbus.horizon_holders(%s) as h"
MAINTAIN: Final = "select postbus.maintain(%s)"
