"""What a source's database says about itself, its tables, and our slot and publication in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from postbus.db import composition as sql
from postbus.db.plain import PlainConnection, connect
from postbus.db.replication.pgoutput import UNCHANGED, Relation, Row, parse_lsn
from postbus.db.replication.walsender import connection_info
from postbus.model.errors import Error, Unavailable

_SERVER: Final = """
select
    current_setting('server_version_num')::integer,
    current_setting('wal_level'),
    pg_is_in_recovery(),
    current_database(),
    current_user,
    (
        select r.rolsuper or r.rolreplication
            or exists (
                select
                from pg_roles as g
                where g.rolname in ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')
                    and pg_has_role(r.oid, g.oid, 'member')
            )
        from pg_roles as r
        where r.rolname = current_user
    ),
    has_database_privilege(current_database(), 'create'),
    current_setting('max_replication_slots')::integer - (select count(*) from pg_replication_slots),
    current_setting('max_wal_senders')::integer - (select count(*) from pg_stat_replication)
"""
# Tables, and the roots of partitioned ones; never ours, nor those that are not logged.
_TABLES: Final = """
select
    c.oid, n.nspname, c.relname, pg_has_role(c.relowner, 'usage'), has_table_privilege(c.oid, 'select'),
    case when c.relkind = 'p' then (
        select coalesce(sum(greatest(l.reltuples, 0)), 0)::bigint
        from pg_partition_tree(c.oid) as t
        join pg_class as l on l.oid = t.relid
        where t.isleaf
    ) else greatest(c.reltuples, 0)::bigint end,
    coalesce((
        select array_agg(l.oid::regclass::text order by l.oid)
        from pg_class as l
        where l.oid in (select t.relid from pg_partition_tree(c.oid) as t where t.isleaf union select c.oid where c.relkind = 'r')
            and case l.relreplident
                when 'n' then true
                when 'd' then not exists (select from pg_index as i where i.indrelid = l.oid and i.indisprimary)
                else false
            end
    ), '{}'),
    n.nspname = any (current_schemas(false))
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relkind in ('r', 'p')
    and c.relpersistence = 'p'
    and not c.relispartition
    and n.nspname not in ('postbus_data', 'information_schema')
    and n.nspname not like 'pg\\_%'
order by n.nspname, c.relname
"""
_PRIMARY_KEY: Final = """
select a.attname
from pg_index as i
cross join lateral unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = %s
    and (
        i.indisreplident
        or (i.indisprimary and not exists (select from pg_index as o where o.indrelid = i.indrelid and o.indisreplident))
    )
    and k.place <= i.indnkeyatts
order by k.place
"""
_PUBLISHED: Final = """
select p.schemaname, p.tablename, p.attnames::text[], p.rowfilter
from pg_publication_tables as p
where p.pubname = %s
order by p.schemaname, p.tablename
"""
_SLOT: Final = """
select
    s.active, s.active_pid, s.confirmed_flush_lsn::text, s.wal_status, s.database, s.plugin,
    to_jsonb(s) ->> 'invalidation_reason',
    case when s.restart_lsn is not null and not pg_is_in_recovery() then (pg_current_wal_lsn() - s.restart_lsn)::bigint end
from pg_replication_slots as s
where s.slot_name = %s
"""
_LONGEST: Final = """
select a.pid, a.usename, coalesce(a.application_name, ''), extract(epoch from clock_timestamp() - a.xact_start)::integer
from pg_stat_activity as a
where a.backend_xid is not null
    and a.pid <> pg_backend_pid()
order by a.xact_start
limit 1
"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    version: int
    wal_level: str
    is_standby: bool
    database: str
    role: str
    may_replicate: bool
    may_create: bool
    free_slots: int
    free_senders: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table that may be published.

    Attributes:
        estimate: About how many rows it has.
        without_identity: It, or those of its partitions, whose updates and deletes cannot be published.
        is_on_path: Its schema is on the search path, so its name is enough.
    """

    oid: int
    schema: str
    name: str
    is_own: bool
    is_readable: bool
    estimate: int
    without_identity: Sequence[str]
    is_on_path: bool

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of a publication, with the columns that it publishes and the condition for its rows."""

    schema: str
    name: str
    columns: tuple[str, ...]
    condition: str | None


@dataclass(frozen=True, slots=True)
class Slot:
    is_active: bool
    active_pid: int | None
    confirmed_lsn: int | None
    wal_status: str | None
    database: str | None
    plugin: str | None
    invalidation: str | None
    held_bytes: int | None

    @property
    def is_lost(self) -> bool:
        return self.wal_status == "lost" or self.invalidation is not None or self.confirmed_lsn is None


@contextmanager
def open_source(url: str, name: str) -> Iterator[PlainConnection]:
    """A connection for questions to a source's database.

    Raises:
        Unavailable: It cannot be reached.
    """
    with ExitStack() as stack:
        try:
            database = stack.enter_context(connect(connection_info(url, application=f"postbus source {name}")))
        except Unavailable as error:
            raise Unavailable(
                f"the source's database cannot be reached: {error.message.removeprefix('cannot connect to Postgres: ')}",
                "check host, port, role and password of its URL, as they are seen from here",
            ) from None
        yield database


def server_facts(database: PlainConnection) -> ServerFacts:
    return ServerFacts(*database.rows(_SERVER)[0])


def tables(database: PlainConnection, patterns: Sequence[str]) -> list[Table]:
    """The tables that fit the patterns."""
    wanted = [_regex(pattern) for pattern in patterns if "." in pattern]
    names = [_regex(pattern) for pattern in patterns if "." not in pattern]
    found = [Table(*row) for row in database.rows(_TABLES)]
    return [
        table
        for table in found
        if any(each.fullmatch(table.full_name) for each in wanted)
        or (table.is_on_path and any(each.fullmatch(table.name) for each in names))
    ]


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.S)


def primary_key(database: PlainConnection, oid: int) -> list[str]:
    """The columns by which rows are told apart: of the replica identity's index, else of the primary key."""
    return [name for (name,) in database.rows(_PRIMARY_KEY, (oid,))]


def published(database: PlainConnection, publication: str) -> list[PublishedTable] | None:
    """The tables of a publication; None if there is no such publication."""
    if not database.rows("select from pg_publication where pubname = %s", (publication,)):
        return None
    rows = database.rows(_PUBLISHED, (publication,))
    return [PublishedTable(schema, name, tuple(columns), condition) for schema, name, columns, condition in rows]


def slot(database: PlainConnection, name: str) -> Slot | None:
    found = database.rows(_SLOT, (name,))
    if not found:
        return None
    active, pid, confirmed, status, of_database, plugin, invalidation, held = found[0]
    lsn = None if confirmed is None else parse_lsn(confirmed)
    return Slot(active, pid, lsn, status, of_database, plugin, invalidation, held)


def create_slot(database: PlainConnection, name: str, version: int) -> int:
    """Create a slot, and say after which position its transactions come.

    Raises:
        Unavailable: A transaction has been open for long, and Postgres waits for its end.
    """
    # A client that gave up would leave a slot behind that keeps the log. This ends on the server.
    database.run("set lock_timeout = '10s'")
    database.run("set statement_timeout = '30s'")
    failover = ", failover => true" if version >= 170000 else ""
    try:
        rows = database.rows(
            f"select (pg_create_logical_replication_slot(%s, 'pgoutput'{failover})).lsn::text", (name,)
        )
    except Unavailable as error:
        raise Unavailable(*_waits_for(database)) from error
    finally:
        database.run("reset lock_timeout")
        database.run("reset statement_timeout")
    return parse_lsn(rows[0][0])


def _waits_for(database: PlainConnection) -> tuple[str, str]:
    found = database.rows(_LONGEST)
    if not found:
        return "the slot could not be created in time", "try again"
    pid, role, application, seconds = found[0]
    who = f"process {pid} of {role}" + (f" ({application})" if application else "")
    return (
        f"the slot waits for open transactions to end: that of {who} has been open for {seconds} seconds",
        f"end it, for example by: select pg_terminate_backend({pid});",
    )


def drop_slot(database: PlainConnection, name: str) -> bool:
    """Drop a slot, ending who reads it. Returns false if there is none."""
    found = slot(database, name)
    if found is None:
        return False
    for _ in range(50):
        if found.active_pid is None:
            break
        database.rows("select pg_terminate_backend(%s)", (found.active_pid,))
        database.rows("select pg_sleep(0.1)")
        again = slot(database, name)
        if again is None:
            return True
        found = again
    database.rows("select pg_drop_replication_slot(%s)", (name,))
    return True


def current_lsn(database: PlainConnection) -> int:
    """How far the log is written."""
    return parse_lsn(database.rows("select pg_current_wal_lsn()::text")[0][0])


def age(moment: datetime) -> float:
    """How many seconds ago that was, by our clock."""
    return max(0.0, (datetime.now(UTC) - moment).total_seconds())


def who(database: PlainConnection, pid: int) -> str:
    """Who a session is, for people."""
    rows = database.rows(
        "select coalesce(application_name, ''), usename, coalesce(client_addr::text, 'this machine') "
        "from pg_stat_activity where pid = %s",
        (pid,),
    )
    if not rows:
        return f"process {pid}"
    application, role, address = rows[0]
    return f"process {pid} ({application or 'without a name'}) of {role} from {address}"


def end_reader(database: PlainConnection, pid: int, application: str) -> bool:
    """End a session if it is a reader of that source. Returns whether it is."""
    rows = database.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid = %s and application_name = %s",
        (pid, application),
    )
    return bool(rows)


def reselect(database: PlainConnection, relation: Relation, row: Row) -> Row:
    """The row with the values that it lacks as they are now; as it is if there is no such row now."""
    missing = [column.name for column, value in zip(relation.columns, row, strict=True) if value is UNCHANGED]
    key = [(column.name, value) for column, value in zip(relation.columns, row, strict=True) if column.is_key]
    conditions = sql.SQL(" and ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value.decode()))
        for name, value in key
        if isinstance(value, bytes)
    )
    columns = sql.SQL(", ").join(map(sql.Identifier, missing))
    table = sql.Identifier(relation.schema, relation.name)
    try:
        _, found = database.texts(sql.SQL("select {} from {} where {}").format(columns, table, conditions))
    except Unavailable:
        raise
    except Error:
        # The table has changed since.
        return row
    if not found:
        return row
    values = dict(zip(missing, found[0], strict=True))
    return [
        values[column.name] if value is UNCHANGED else value
        for column, value in zip(relation.columns, row, strict=True)
    ]


def is_passing(error: Error) -> bool:
    """Whether a statement failed only because of what others did at the moment: a lock, a deadlock, a cancel."""
    return getattr(error.__cause__, "sqlstate", None) in ("55P03", "40P01", "57014")
