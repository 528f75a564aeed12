"""Changes of a table that is kept as a stream says: staged by tasks, applied in one transaction with the position."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from postbus.db import composition as sql
from postbus.db.arrays import BigintArray, JsonbArray, TextArray
from postbus.db.session import Session
from postbus.model.errors import Conflict, Unavailable
from postbus.pipelines.materialize.target_table import Fields, Place, column, listed

_INSERT: Final = """
insert into {stage} (attempt, seq, key, published_at, row, kept)
select $1::uuid, u.seq, u.key, u.published_at, u.row, u.kept
from unnest($2::bigint[], $3::text[], $4::text[]::timestamptz[], $5::jsonb[], $6::jsonb[])
    as u (seq, key, published_at, row, kept)
"""
# What empties the table ends each key that there was.
_TRUNCATED: Final = """
select s.attempt::text, s.seq, s.published_at::text
from {stage} as s
where s.attempt = any ($1::text[]::uuid[])
    and s.key is null
order by s.seq
"""
_TRUNCATE: Final = """
insert into {stage} (attempt, seq, key, published_at)
select $2::uuid, $3, k.key, $4::timestamptz
from (
    select t._key as key from {table} as t
    union
    select s.key from {stage} as s where s.attempt = any ($1::text[]::uuid[]) and s.key is not null and s.seq < $3
) as k
"""
_FORGET_TRUNCATES: Final = "delete from {stage} as s where s.attempt = any ($1::text[]::uuid[]) and s.key is null"
_HAS_KEPT: Final = (
    "select exists (select from {stage} as s where s.attempt = any ($1::text[]::uuid[]) and s.kept is not null)"
)
# Values that a change does not have are those of the change before, or of the table.
_INDEX_STAGE: Final = "create index if not exists {index} on {stage} (key, seq)"
_FILL: Final = """
update {stage} as s
set row = s.row || coalesce(
    (
        select jsonb_object_agg(
            n.name,
            case when b.seq is null then to_jsonb(t) -> n.name else b.row -> n.name end
        )
        from jsonb_array_elements_text(s.kept) as n (name)
        left join lateral (
            select p.seq, p.row
            from {stage} as p
            where p.key = s.key
                and p.seq < s.seq
                and p.attempt = any ($1::text[]::uuid[])
                and (p.kept is null or not p.kept ? n.name)
            order by p.seq desc
            limit 1
        ) as b on true
        left join lateral (
            select t.* from {table} as t where t._key = s.key order by t._seq desc limit 1
        ) as t on true
        where (b.seq is not null and b.row is not null) or (b.seq is null and t._key is not null)
    ),
    '{{}}'
)
where s.attempt = any ($1::text[]::uuid[])
    and s.kept is not null
"""
_MERGE: Final = """
with last as (
    select distinct on (s.key) s.*
    from {stage} as s
    where s.attempt = any ($1::text[]::uuid[])
    order by s.key, s.seq desc
),
gone as (
    delete from {table} as t
    using last as l
    where t._key = l.key
        and l.row is null
)
insert into {table} as t (_key, {names} _seq, _published_at)
select l.key, {values} l.seq, l.published_at
from last as l
cross join lateral jsonb_populate_record(null::{table}, l.row) as r
where l.row is not null
on conflict (_key) do update
set {changes} _seq = excluded._seq, _published_at = excluded._published_at
"""
_END_VERSIONS: Final = """
update {table} as t
set valid_to = greatest(f.published_at, t.valid_from),
    is_current = false
from (
    select distinct on (s.key) s.key, s.published_at
    from {stage} as s
    where s.attempt = any ($1::text[]::uuid[])
    order by s.key, s.seq
) as f
where t._key = f.key
    and t.is_current
"""
_ADD_VERSIONS: Final = """
insert into {table} (_key, {names} _seq, valid_from, valid_to, is_current)
select
    c.key,
    {values}
    c.seq,
    c.published_at,
    case when c.next_at is not null then greatest(c.next_at, c.published_at) end,
    c.next_at is null
from (
    select s.*, lead(s.published_at) over (partition by s.key order by s.seq) as next_at
    from {stage} as s
    where s.attempt = any ($1::text[]::uuid[])
) as c
cross join lateral jsonb_populate_record(null::{table}, c.row) as r
where c.row is not null
"""


def stage_rows(database: Session, place: Place, attempt: str, columns: dict[str, list[Any]]) -> None:
    """Stage changes of one attempt at a task: seqs, keys, times and rows, side by side."""
    parameters = (
        attempt,
        BigintArray(columns["seq"]),
        TextArray([None if key is None else key.encode() for key in columns["key"]]),
        TextArray([moment.isoformat().encode() for moment in columns["published_at"]]),
        JsonbArray([None if row is None else row.encode() for row in columns["row"]]),
        JsonbArray([None if kept is None else kept.encode() for kept in columns["kept"]]),
    )
    database.rows(place.statement(_INSERT), parameters)


def merge(
    database: Session,
    place: Place,
    after_seq: int,
    to_seq: int,
    attempts: Iterable[tuple[str, int]],
    fields: Fields,
    *,
    is_history: bool,
) -> None:
    """Apply what was staged, and move the position.

    Raises:
        Conflict: Another run has taken this one's place.
        Unavailable: What was staged is gone, because Postgres crashed; nothing was applied.
    """
    known = database.rows(
        place.statement(
            "select r.position_seq, r.stage, r.fields from {register} as r where r.table_name = $1 for update"
        ),
        (place.table,),
    )
    if not known or tuple(known[0][:2]) != (after_seq, place.stage):
        raise Conflict(f"another run keeps the table {place.table}", "this run stops; nothing was lost or duplicated")
    had = {name for name, _ in known[0][2]}
    for name, kind in fields:
        if name not in had:
            database.rows(place.statement("alter table {table} add column {column}", column=column(name, kind)))
    counts = list(attempts)
    counted = [TextArray([attempt.encode() for attempt, _ in counts])]
    found = database.value(
        place.statement("select count(*) from {stage} as s where s.attempt = any ($1::text[]::uuid[])"), counted
    )
    if found != sum(count for _, count in counts):
        raise Unavailable("staged changes are gone: Postgres crashed", "nothing was applied; run it again")
    _complete(database, place, counted)
    names = [sql.Identifier(name) for name, _ in fields]
    parts = {
        "names": listed(names),
        "values": listed(sql.SQL("r.{}").format(name) for name in names),
        "changes": listed(sql.SQL("{0} = excluded.{0}").format(name) for name in names),
    }
    for text in (_END_VERSIONS, _ADD_VERSIONS) if is_history else (_MERGE,):
        database.rows(place.statement(text, **parts), counted)
    database.rows(
        place.statement(
            "update {register} set position_seq = $2, fields = $3::jsonb, moved_at = clock_timestamp() where table_name = $1"
        ),
        (place.table, to_seq, json.dumps(list(fields))),
    )
    database.rows(place.statement("truncate {stage}"))


def _complete(database: Session, place: Place, counted: list[TextArray]) -> None:
    """Make whole rows, and ends of keys, of what was staged."""
    for attempt, seq, published_at in database.rows(place.statement(_TRUNCATED), counted):
        database.rows(place.statement(_TRUNCATE), (*counted, attempt, seq, published_at))
    database.rows(place.statement(_FORGET_TRUNCATES), counted)
    if database.value(place.statement(_HAS_KEPT), counted):
        database.rows(place.statement(_INDEX_STAGE, index=sql.Identifier(f"{place.stage}_key")))
        database.rows(place.statement(_FILL), counted)
