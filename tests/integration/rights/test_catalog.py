"""What a role can reach, by a walk through the catalog."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.integration.rights.functions import ASKING, TELLING_NOTHING
from tests.integration.rights.place import RIGHTS, Place, execute

pytestmark = pytest.mark.newest_server


@pytest.mark.parametrize("right", [*RIGHTS, "none"])
def test_a_role_reaches_no_table_but_the_log_that_it_may_read(
    place: Place, owner: psycopg.Connection[Any], right: str
) -> None:
    found = {
        (name, privilege)
        for name, privilege in execute(
            owner,
            """
            select c.oid::regclass::text, p.privilege
            from pg_class as c
            cross join unnest(
                array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger', 'usage']
            ) as p (privilege)
            where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
                and case
                    when c.relkind = 'S' then
                        p.privilege in ('select', 'update', 'usage') and has_sequence_privilege(%s, c.oid, p.privilege)
                    when c.relkind in ('r', 'v', 'm', 'p', 'f')
                        and p.privilege in ('select', 'insert', 'update', 'references')
                    then
                        has_any_column_privilege(%s, c.oid, p.privilege)
                        or has_table_privilege(%s, c.oid, p.privilege)
                    when c.relkind in ('r', 'v', 'm', 'p', 'f') then
                        p.privilege <> 'usage' and has_table_privilege(%s, c.oid, p.privilege)
                end
            """,
            *[place.roles[right]] * 4,
        )
    }

    common = {(f"postbus_data.{name}", "select") for name in ("current_caller", "migration", "installation")}
    log = {
        (name, "select")
        for (name,) in execute(
            owner,
            "select oid::regclass::text from pg_class where relkind = 'r' and relname like %s",
            f"log_{place.stream_id}_%",
        )
    }
    assert len(log) > 2
    assert found == (common | log if right in ("consume", "read") else common)


@pytest.mark.parametrize("right", [*RIGHTS, "none"])
def test_a_role_may_call_only_functions_that_ask_what_it_may_do(
    place: Place, owner: psycopg.Connection[Any], right: str
) -> None:
    found = {
        name
        for (name,) in execute(
            owner,
            """
            select p.pronamespace::regnamespace || '.' || p.proname
            from pg_proc as p
            where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
                and has_function_privilege(%s, p.oid, 'execute')
            """,
            place.roles[right],
        )
    }

    own = {
        "publish": {f"postbus_data.{name}_{place.stream_id}" for name in ("publish", "publish_many")},
        "consume": {f"postbus_data.{name}_{place.stream_id}" for name in ("ack_and_receive", "ack")},
    }
    if right == "none":
        ((third,),) = execute(owner, "select id from postbus.describe_stream('third')")
        own["none"] = {f"postbus_data.{name}_{third}" for name in ("publish", "publish_many")}
    asking = {f"{schema}.{name}" for schema, names in ASKING.items() for name in names}
    assert found == asking | TELLING_NOTHING | own.get(right, set())


def test_each_function_that_acts_with_its_owners_rights_pins_its_search_path_and_asks_or_is_granted(
    owner: psycopg.Connection[Any],
) -> None:
    rows = execute(
        owner,
        """
        select p.pronamespace::regnamespace || '.' || p.proname, p.prosecdef, coalesce(array_to_string(p.proconfig, ';'), ''),
            pg_get_userbyid(p.proowner), p.prosrc, has_function_privilege('public', p.oid, 'execute')
        from pg_proc as p
        where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
        """,
    )

    for name, is_definer, settings, _, body, is_public in rows:
        if is_definer:
            assert "search_path=pg_catalog, pg_temp" in settings, name
        if is_public and name not in TELLING_NOTHING:
            assert is_definer, name
            assert "caller" in body, name
    assert len({holder for *_, holder, _, _ in rows}) == 1


def test_a_role_may_not_create_anything_in_the_schemas_and_no_policy_is_left(
    place: Place, owner: psycopg.Connection[Any]
) -> None:
    for role in place.roles.values():
        ((may_create,),) = execute(
            owner,
            "select has_schema_privilege(%s, 'postbus', 'create') or has_schema_privilege(%s, 'postbus_data', 'create')",
            role,
            role,
        )
        assert not may_create
    assert execute(owner, "select from pg_policies where schemaname like 'postbus%'") == []
