"""What `postbus doctor` asks Postgres. Every query is a plain select that changes and locks nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from postbus.db import migrations
from postbus.db.plain import PlainConnection, connect
from postbus.model.errors import Error, MigrationDue

Row = Mapping[str, Any]

_OF_POSTGRES: Final = {
    "server": """
        select
            current_setting('server_version_num')::integer as number, current_setting('server_version') as version,
            pg_is_in_recovery() as is_standby, current_database() as database, current_user as role,
            (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
            (select age(d.datfrozenxid) from pg_database as d where d.datname = current_database()) as xid_age
    """,
    "settings": """
        select s.name, s.setting
        from pg_settings as s
        where s.name in ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts', 'max_connections',
            'max_locks_per_transaction', 'idle_in_transaction_session_timeout', 'shared_buffers')
    """,
    "transactions": """
        select
            a.pid, a.usename as user_name, a.application_name, a.state,
            extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds, left(a.query, 60) as query
        from pg_stat_activity as a
        where a.backend_type = 'client backend'
            and a.xact_start < clock_timestamp() - make_interval(secs => %(patience)s)
            and a.pid <> pg_backend_pid()
        order by a.xact_start
        limit 5
    """,
    "blocked": """
        select
            a.pid, pg_blocking_pids(a.pid) as by_pids, extract(epoch from clock_timestamp() - a.query_start)::float8 as seconds,
            left(a.query, 60) as query
        from pg_stat_activity as a
        where a.wait_event_type = 'Lock'
            and a.query_start < clock_timestamp() - make_interval(secs => %(patience)s)
        limit 5
    """,
    "prepared": """
        select p.gid, extract(epoch from clock_timestamp() - p.prepared)::float8 as seconds
        from pg_prepared_xacts as p
        where p.database = current_database()
        order by p.prepared
    """,
    "slots": """
        select
            s.slot_name, s.active, s.wal_status,
            case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) end::bigint as retained
        from pg_replication_slots as s
    """,
}
_OF_POSTBUS: Final = {
    "holders": """
        select s.name as stream, h.pid, h.user_name, h.application_name, h.state, h.prepared_transaction,
            extract(epoch from h.held_for)::float8 as seconds
        from postbus_data.stream as s
        cross join lateral postbus.horizon_holders(s.name) as h
        where s.id in (
                select l.classid::bigint - postbus_data.publisher_lock_class(0)
                from pg_locks as l
                where l.locktype = 'advisory'
                    and l.objsubid = 2
                    and l.mode = 'ShareLock'
            )
            and h.held_for > make_interval(secs => %(patience)s)
    """,
    "locks_held": """
        select
            h.stream_name as stream, h.pid, h.user_name, h.application_name, h.state, h.prepared_transaction,
            min(h.consumer_name) as consumer, count(distinct h.consumer_name) as consumers, h.warning,
            array_agg(distinct h.purpose) as purposes, count(*) as count, extract(epoch from max(h.held_for))::float8 as seconds
        from postbus.lock_holders() as h
        where h.warning is not null
            or (h.purpose <> 'publish' and h.held_for > make_interval(secs => %(patience)s))
        group by h.stream_name, h.pid, h.user_name, h.application_name, h.state, h.prepared_transaction, h.warning
        order by seconds desc nulls last
        limit 20
    """,
    "bloated": """
        select t.relname as name, t.n_dead_tup as dead, t.n_live_tup as live, t.last_autovacuum
        from pg_stat_user_tables as t
        where t.schemaname = 'postbus_data'
            and t.n_dead_tup > 100000
            and t.n_dead_tup > 10 * t.n_live_tup
        order by t.n_dead_tup desc
        limit 5
    """,
    "cached": """
        select c.relname as name, q.seqcache as size
        from pg_sequence as q
        join pg_class as c on c.oid = q.seqrelid
        where c.relnamespace = 'postbus_data'::regnamespace
            and c.relname ~ '^(seq|layout|urgent)_'
            and q.seqcache > 1
    """,
    "full": "select s.name from postbus_data.stream as s where s.is_full",
    "unbounded": """
        select s.name, b.bytes
        from postbus_data.stream as s
        cross join lateral (
            select sum(pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number))))::bigint as bytes
            from postbus_data.segment as g
            where g.stream_id = s.id
        ) as b
        where b.bytes > 10::bigint * 1024 * 1024 * 1024
            and num_nonnulls(s.retain_up_to, s.max_messages, s.max_storage) = 0
            and not s.until_acked
        order by bytes desc
        limit 5
    """,
    "unrolled": """
        select s.name, max(g.prepared_at) as begun_at
        from postbus_data.stream as s
        join postbus_data.segment as g on g.stream_id = s.id
        where pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id)) > s.start_seq
        group by s.id, s.name, s.segment_age
        having max(g.prepared_at) < clock_timestamp() - 2 * s.segment_age - interval '1 hour'
            and bool_or(g.sealed_at is null and pg_relation_size(to_regclass(postbus_data.log_table(s.id, g.number))) > 0)
    """,
    "overdue": """
        select c.stream_name as stream, c.name, l.expired
        from postbus_data.consumer as c
        cross join lateral (
            select count(*) as expired
            from (
                select
                from postbus_data.lease as l
                where l.consumer_id = c.id
                    and l.epoch = c.epoch
                    and l.deadline < clock_timestamp() - interval '5 minutes'
                limit 1000
            ) as l
        ) as l
        where l.expired > 0
            and not c.paused
    """,
    "dead": """
        select c.stream_name as stream, c.name, d.count
        from postbus_data.consumer as c
        cross join lateral (
            select count(*) as count
            from (select from postbus_data.dead_letter as d where d.consumer_id = c.id limit 10000) as d
        ) as d
        where d.count > 0
        order by d.count desc
        limit 10
    """,
    "superuser": """
        select t.tableowner as owner, (select count(distinct g.role) from postbus_data.stream_grant as g) as roles
        from pg_tables as t
        join pg_roles as r on r.rolname = t.tableowner
        where t.schemaname = 'postbus_data'
            and t.tablename = 'stream'
            and r.rolsuper
            and exists (select from postbus_data.stream_grant)
    """,
    "upkeep": """
        select extract(epoch from clock_timestamp() - coalesce(u.maintained_at, u.created_at))::float8 as seconds
        from postbus_data.upkeep as u
        where greatest(coalesce(u.maintained_at, u.created_at), pg_postmaster_start_time())
                < clock_timestamp() - interval '5 minutes'
            and exists (select from postbus_data.stream)
    """,
    "schedules": """
        select t.name as stream, s.name, s.problem
        from postbus_data.schedule as s
        join postbus_data.stream as t on t.id = s.stream_id
        where not s.paused
            and (s.problem is not null or s.filled_until < clock_timestamp())
        order by t.name, s.name
        limit 10
    """,
    "sources": """
        select i.name, i.state, i.problem, i.remedy, i.slot, i.wal_held_bytes, i.lag_seconds
        from postbus.list_sources() as i
        order by i.name
    """,
    "holding": """
        select c.stream_name as stream, c.name
        from postbus_data.consumer as c
        where c.keep_unread
            and c.paused
    """,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """The results of all queries.

    Attributes:
        rows: The answers, by the name of the question.
        unanswered: Questions that this role may not ask, with why.
        migration_due: Why Postbus cannot be used there; None when it can.
        clock_ahead: By how many seconds the clock of this machine is ahead of the server's.
        round_trip: How many seconds a question takes.
    """

    rows: dict[str, Sequence[Row]] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)
    migration_due: MigrationDue | None = None
    clock_ahead: float = 0.0
    round_trip: float = 0.0


def examine(url: str, *, patience: float = 10.0, connect_timeout: int = 5) -> Facts:
    """Run all queries.

    Args:
        url: The database.
        patience: For how many seconds a transaction may be open, or wait for another, before it is worth a word.
        connect_timeout: How many seconds to wait for a connection.

    Raises:
        postbus.Error: The database cannot be reached.
    """
    with connect(url, connect_timeout=connect_timeout) as connection:
        return _examined(connection, url, patience)


def without_queries(facts: Facts) -> Facts:
    """The same facts for somebody who may not read what other sessions run."""
    rows: dict[str, Sequence[Row]] = {
        name: [{**row, "query": "not shown"} if "query" in row else row for row in found]
        for name, found in facts.rows.items()
    }
    return replace(facts, rows=rows)


def _examined(connection: PlainConnection, url: str, patience: float) -> Facts:
    rows: dict[str, Sequence[Row]] = {}
    unanswered: dict[str, str] = {}
    due = _migration_due(url)
    questions = _OF_POSTGRES if due is not None else {**_OF_POSTGRES, **_OF_POSTBUS}
    for name, statement in questions.items():
        try:
            rows[name] = connection.dicts(statement.encode(), {"patience": patience})
        except Error as error:
            unanswered[name] = error.message
    ahead, round_trip = _clock(connection)
    return Facts(rows, unanswered, due, ahead, round_trip)


def _migration_due(url: str) -> MigrationDue | None:
    try:
        steps = migrations.migrate(url, dry_run=True)
    except MigrationDue as due:
        return due
    if not steps:
        return None
    missing = (
        "Postbus is not installed in this database"
        if steps[0].name == "install"
        else "the schema of Postbus in this database is older than this program"
    )
    return MigrationDue(missing, "run: postbus migrate")


def _clock(connection: PlainConnection) -> tuple[float, float]:
    """How far our clock is ahead, by the fastest of three tries."""
    tries = []
    for _ in range(3):
        before = datetime.now(UTC)
        ((at,),) = connection.rows("select clock_timestamp()")
        after = datetime.now(UTC)
        middle = before + (after - before) / 2
        tries.append(((after - before).total_seconds(), (middle - at).total_seconds()))
    round_trip, ahead = min(tries)
    return ahead, round_trip
