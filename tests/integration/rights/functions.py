"""The functions that a role with a grant may call, and a call of each of them on a stream where it has no right."""

from __future__ import annotations

from typing import Final

# What the library of that release calls.
RELEASE_0_1_0: Final = ("serve", "receive_batches", "pulse", "pulse_of_consumers")
# Every function that a role with a grant may call. Those of the first group ask what their caller may do.
ASKING: Final = {
    "postbus": {
        *(
            "ack",
            "backlog",
            "cancel",
            "channel_states",
            "claim",
            "commit",
            "consumer_info",
            "consumer_overview",
            "dead_letters",
            "defer",
            "describe_stream",
            "discard",
        ),
        *(
            "extend",
            "fetch",
            "history",
            "horizon",
            "join_group",
            "leave_group",
            "list_channels",
            "list_consumers",
            "list_pushes",
            "list_scheduled",
            "list_schedules",
            "list_streams",
            "nack",
        ),
        *(
            "overview",
            "peek",
            "peek_at",
            "publish",
            "publish_counts",
            "publish_many",
            "publish_rate",
            "push_attempts",
            "read",
            "receive",
            "redrive",
            "release",
            "reschedule",
            "state",
        ),
        *("stats", "stream_info", "terminate"),
    },
    "postbus_data": {
        *(
            "history_bounds",
            "stream_horizons",
            "consumers_to_wake",
            "ack_and_receive_in_any_session",
            "ack_and_receive",
            *RELEASE_0_1_0,
            "spark_commit",
            "spark_discard",
            "spark_end",
        ),
        *(
            "spark_history",
            "spark_lost",
            "spark_publish",
            "spark_segments",
            "spark_seq_since",
            "spark_stage",
            "spark_stage_rows",
        ),
        *("spark_start", "spark_state", "spark_written", "waiter"),
    },
}
TELLING_NOTHING: Final = {
    "postbus.current_caller",
    "postbus.partition_of",
    "postbus.priority_of",
    "postbus_data.pattern_regex",
    "postbus_data.spark_check",
}


# A call of each function that asks, on the stream "other".
ELSEWHERE: Final = {
    "ack": "postbus.ack('other', 'c', {tokens})",
    "backlog": "postbus.backlog('other', 'c')",
    "cancel": "postbus.cancel('other', array[1, 2, 3, 4]::bigint[])",
    "channel_states": "postbus.channel_states('other', 'c')",
    "claim": "postbus.claim('other', 'g')",
    "commit": "postbus.commit('other', 'g', {tokens})",
    "consumer_info": "postbus.consumer_info('other', 'c')",
    "consumer_overview": "postbus.consumer_overview('other')",
    "dead_letters": "postbus.dead_letters('other', 'c')",
    "defer": "postbus.defer('other', 'c', {tokens})",
    "describe_stream": "postbus.describe_stream('other')",
    "discard": "postbus.discard('other', 'c')",
    "extend": "postbus.extend('other', 'c', {tokens})",
    "fetch": "postbus.fetch('other', 0, 1, 100)",
    "history": "postbus.history('other', 'c')",
    "horizon": "postbus.horizon('other')",
    "join_group": "postbus.join_group('other', 'g', 'eve')",
    "leave_group": "postbus.leave_group('other', 'g', 'w')",
    "list_channels": "postbus.list_channels('other')",
    "list_consumers": "postbus.list_consumers('other')",
    "list_pushes": "postbus.list_pushes('other')",
    "list_scheduled": "postbus.list_scheduled('other')",
    "list_schedules": "postbus.list_schedules('other')",
    "nack": "postbus.nack('other', 'c', {tokens})",
    "peek": "postbus.peek('other', 'c')",
    "peek_at": "postbus.peek_at('other', 'c', 1)",
    "publish": "postbus.publish('other', 'a', '1')",
    "publish_many": "postbus.publish_many('other', array['a'], array['1'])",
    "publish_counts": "postbus.publish_counts('other')",
    "publish_rate": "postbus.publish_rate('other')",
    "push_attempts": "postbus.push_attempts('other', 'c')",
    "read": "postbus.read('other')",
    "receive": "postbus.receive('other', 'c', 10)",
    "redrive": "postbus.redrive('other', 'c')",
    "release": "postbus.release('other', 'g', {tokens})",
    "reschedule": "postbus.reschedule('other', array[1, 2]::bigint[], now())",
    "state": "postbus.state('other')",
    "stats": "postbus.stats('other', 'c')",
    "stream_info": "postbus.stream_info('other')",
    "terminate": "postbus.terminate('other', 'c', {tokens})",
    "history_bounds": "postbus_data.history_bounds('other')",
    "ack_and_receive_in_any_session": (
        "postbus_data.ack_and_receive_in_any_session('other', 'c', 10, null, null, {tokens}, false)"
    ),
    "ack_and_receive": "postbus_data.ack_and_receive('other', 'c', 10, null, null, {tokens}, false)",
    "serve": "postbus_data.serve('other', 'c', 10, null, null, {tokens})",
    "receive_batches": "postbus_data.receive_batches('other', 'c', 10, null, null, {tokens})",
    "spark_commit": "postbus_data.spark_commit('other', 'c', 100)",
    "spark_discard": "postbus_data.spark_discard('other/w', 1, array[gen_random_uuid()])",
    "spark_end": "postbus_data.spark_end('other', 0)",
    "spark_publish": "postbus_data.spark_publish('other', 'w', 1, null, true, array[gen_random_uuid()], array[0]::bigint[])",
    "spark_seq_since": "postbus_data.spark_seq_since('other', now())",
    "spark_stage": (
        "postbus_data.spark_stage('other', gen_random_uuid(), 1, 'other/w', 1, 1, array['a'], array['1'], null, null, null)"
    ),
    "spark_stage_rows": "postbus_data.spark_stage_rows('other', gen_random_uuid(), 1, 'other/w', 1, 1, false, 1, '')",
    "spark_start": "postbus_data.spark_start('other', 'earliest', null, null)",
    "spark_state": "postbus_data.spark_state('other')",
    "spark_written": "postbus_data.spark_written('other', 'w')",
    "waiter": "postbus_data.waiter('other', 'c')",
}
# These answer for what is named by numbers, or for all streams: they say nothing of those that the caller may not use.
SILENT: Final = {
    "list_streams": "select name from postbus.list_streams() where name = 'other'",
    "overview": "select name from postbus.overview() where name = 'other'",
    "consumer_overview": "select name from postbus.consumer_overview() where stream_name = 'other'",
    "stream_horizons": (
        "select from postbus_data.stream_horizons(array[{other}]::bigint[], '{{0}}') as p where p is not null"
    ),
    "pulse": ("select from postbus_data.pulse(array[{other}]::bigint[], '{{0}}') as p where p is not null"),
    "consumers_to_wake": (
        "select from postbus_data.consumers_to_wake(array[{consumer}]::bigint[]) as p where p.next_seconds is not null"
    ),
    "pulse_of_consumers": (
        "select from postbus_data.pulse_of_consumers(array[{consumer}]::bigint[]) as p where p.next_seconds is not null"
    ),
    "spark_history": "select from postbus_data.spark_history({consumer}, '-infinity', 'infinity')",
    "spark_lost": "select from postbus_data.spark_lost({other}, 0) as l where l.purged is true or l.dropped is true",
    "spark_segments": "select from postbus_data.spark_segments({other}, 0, 1000000)",
}
