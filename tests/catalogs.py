"""What is in a database's catalogs of Postbus, in a form that two installs can be compared by."""

from __future__ import annotations

from typing import Any, Final

import psycopg

# Each names a thing and says everything about it that an upgrade could get wrong, but nothing that differs by chance (oids).
_QUESTIONS: Final = {
    "relation": """
        select c.oid::regclass::text, c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity, c.reloptions,
            c.relacl::text, obj_description(c.oid)
        from pg_class as c
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "column": """
        select a.attrelid::regclass::text, a.attname,
            (select count(*) from pg_attribute as b
             where b.attrelid = a.attrelid and b.attnum between 1 and a.attnum and not b.attisdropped),
            format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation::text, a.attnotnull, a.attidentity,
            a.attstorage, pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid
        left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and c.relkind <> 'S'
            and a.attnum > 0
            and not a.attisdropped
    """,
    "constraint": """
        select coalesce(nullif(c.conrelid, 0)::regclass::text, c.contypid::regtype::text), c.conname,
            pg_get_constraintdef(c.oid), c.convalidated
        from pg_constraint as c
        where c.connamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "index": """
        select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), i.indisvalid
        from pg_index as i
        join pg_class as c on c.oid = i.indexrelid
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "sequence": """
        select s.seqrelid::regclass::text, s.seqtypid::regtype::text, s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
            s.seqcache, s.seqcycle
        from pg_sequence as s
        join pg_class as c on c.oid = s.seqrelid
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "function": """
        select p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proacl::text, obj_description(p.oid)
        from pg_proc as p
        where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and p.prokind <> 'a'
    """,
    "type": """
        select t.oid::regtype::text, t.typtype, t.typacl::text
        from pg_type as t
        where t.typnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "policy": """
        select p.polrelid::regclass::text, p.polname
        from pg_policy as p
        join pg_class as c on c.oid = p.polrelid
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
    """,
    "view": """
        select c.oid::regclass::text, pg_get_viewdef(c.oid)
        from pg_class as c
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and c.relkind = 'v'
    """,
    "trigger": """
        select t.tgrelid::regclass::text, pg_get_triggerdef(t.oid), t.tgenabled
        from pg_trigger as t
        join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and not t.tgisinternal
    """,
    "schema": "select n.nspname, n.nspacl::text from pg_namespace as n where n.nspname in ('postbus', 'postbus_data')",
    "migration": "select m.number, m.name from postbus_data.migration as m",
    "installation": "select i.* from postbus_data.installation as i",
}

Thing = tuple[Any, ...]


def catalog(url: str) -> set[Thing]:
    """Everything that an install of Postbus has made in a database."""
    with psycopg.connect(url, autocommit=True) as connection:
        # Names are written with their schema.
        connection.execute("set search_path = pg_catalog")
        return {
            (kind, *(tuple(value) if isinstance(value, list) else value for value in row))
            for kind, question in _QUESTIONS.items()
            for row in connection.execute(question.encode())
        }


def differences(one: set[Thing], other: set[Thing]) -> list[Thing]:
    """What only one of two catalogs has, in an order that puts the two sides of a change together."""
    return sorted(one ^ other, key=repr)
