"""Comments that psql shows beside tables and functions."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.newest_server


def test_every_public_function_is_explained(sql: Any) -> None:
    rows = sql.execute(
        """
        select p.oid::regprocedure::text, obj_description(p.oid, 'pg_proc')
        from pg_proc as p
        where p.pronamespace = 'postbus'::regnamespace
        """
    ).fetchall()

    assert len(rows) > 50
    assert [name for name, comment in rows if not comment or not comment.strip()] == []


def test_every_table_says_what_a_row_is(sql: Any) -> None:
    rows = sql.execute(
        r"""
        select c.relname, obj_description(c.oid, 'pg_class')
        from pg_class as c
        where c.relnamespace = 'postbus_data'::regnamespace
            and c.relkind = 'r'
            -- Those of a stream are described in ARCHITECTURE.md.
            and c.relname !~ '_\d+$'
        """
    ).fetchall()

    assert len(rows) > 20
    assert [name for name, comment in rows if not (comment or "").startswith(("A row ", "The one row "))] == []
