"""Ways around the rights of a role, which lead nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.integration.rights.functions import ELSEWHERE
from tests.integration.rights.place import RIGHTS, Place, contents, execute

pytestmark = pytest.mark.newest_server


def test_rows_cannot_be_written_beside_the_functions(place: Place) -> None:
    with place.connect("consume") as connection:
        for statement in (
            "insert into postbus_data.settled (token, seq) select l.token, unnest(l.seqs) from postbus_data.lease as l",
            "delete from postbus_data.lease",
            "delete from postbus_data.dead_letter",
            "select from postbus_data.dead_letter",
            "select from postbus_data.segment",
            "select from postbus_data.stream_grant",
            "select from postbus_data.caller_key",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                execute(connection, statement)
    with place.connect("publish") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(
            connection,
            f"insert into postbus_data.log_{place.stream_id}_1 (seq, published_at, partition, data) values (999, now(), 0, '1')",
        )


@pytest.fixture
def hostile_schema(place: Place, owner: psycopg.Connection[Any]) -> Iterator[Callable[[str], str]]:
    """Makes a schema of a role, in which operators and functions have other meanings; says its name."""
    made: list[str] = []

    def make(right: str) -> str:
        name = f"schema_of_{place.roles[right]}"
        made.append(name)
        execute(owner, f"create schema {name} authorization {place.roles[right]}")
        with place.connect(right) as connection:
            for type_ in ("integer", "bigint", "text", "bytea"):
                execute(
                    connection,
                    f"create function {name}.always(a {type_}, b {type_}) returns boolean language sql as 'select true';"
                    f"create operator {name}.= (leftarg = {type_}, rightarg = {type_}, function = {name}.always)",
                )
            execute(
                connection,
                f"create function {name}.pg_has_role(a text, b oid, c text) returns boolean language sql as 'select true';"
                f"create function {name}.pg_has_role(a text, b name, c text) returns boolean language sql as 'select true';"
                f"create function {name}.sha256(a bytea) returns bytea language sql as $$select '\\x00'::bytea$$;"
                f"create function {name}.current_user() returns text language sql as $$select 'postbus'$$",
            )
        return name

    yield make
    for name in made:
        execute(owner, f"drop schema {name} cascade")


@pytest.mark.parametrize("right", RIGHTS)
def test_operators_and_functions_of_the_callers_own_schema_change_nothing(
    place: Place, owner: psycopg.Connection[Any], hostile_schema: Callable[[str], str], right: str
) -> None:
    name = hostile_schema(right)
    before = contents(owner)
    tokens = [lease for (lease,) in execute(owner, "select lpad(to_hex(token), 16, '0') from postbus_data.lease")]
    with place.connect(right) as connection:
        execute(connection, f"set search_path = {name}, pg_catalog")
        for call in ELSEWHERE.values():
            with pytest.raises(psycopg.Error) as refused:
                execute(connection, f"select * from {call.format(tokens=f'array{tokens}')}")
            assert refused.value.sqlstate == "PB404"

    assert contents(owner) == before


def test_a_signature_is_worth_nothing_in_another_session_or_transaction(place: Place) -> None:
    with place.connect("read") as one, place.connect("none") as other:
        with one.transaction():
            ((caller,),) = execute(one, "select postbus.current_caller()::text")
            assert execute(
                one, "select count(*) > 0 from postbus.read('mine', caller => %s::postbus.caller)", caller
            ) == [(True,)]
            with pytest.raises(psycopg.Error, match="does not exist"):
                execute(other, "select * from postbus.read('mine', caller => %s::postbus.caller)", caller)
        with pytest.raises(psycopg.Error, match="does not exist"):
            execute(one, "select * from postbus.read('mine', caller => %s::postbus.caller)", caller)


def test_a_right_that_was_taken_back_is_gone_at_once(place: Place, owner: psycopg.Connection[Any]) -> None:
    with place.connect("read") as connection:
        assert execute(connection, "select * from postbus.read('mine', max_messages => 1)")
        execute(owner, "select postbus.revoke_stream('mine', %s, 'read')", place.roles["read"])
        try:
            with pytest.raises(psycopg.Error, match="does not exist"):
                execute(connection, "select * from postbus.read('mine')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                execute(connection, f"select from postbus_data.log_{place.stream_id}_1")
        finally:
            execute(owner, "select postbus.grant_stream('mine', %s, 'read')", place.roles["read"])


def test_code_that_others_run_for_a_role_has_that_roles_rights_only(
    place: Place, owner: psycopg.Connection[Any], hostile_schema: Callable[[str], str]
) -> None:
    """An index makes whoever analyzes its table run a function, as the owner of the table: a superuser, or autovacuum."""
    name = hostile_schema("none")
    before = contents(owner)
    with place.connect("none") as connection:
        execute(
            connection,
            f"""
            create table {name}.seen (found integer);
            create table {name}.bait (n integer);
            insert into {name}.bait select generate_series(1, 100);
            create function {name}.peep(n integer) returns integer language plpgsql immutable as $$
            begin
                return (select count(*) from postbus.receive('other', 'c', 1));
            exception when others then
                return -1;
            end
            $$;
            create index bait_peep on {name}.bait ({name}.peep(n));
            """,
        )
    execute(owner, f"analyze {name}.bait")
    execute(owner, f"reindex table {name}.bait")

    assert contents(owner) == before


def test_a_publisher_cannot_slip_below_the_horizon_by_a_setting(place: Place, owner: psycopg.Connection[Any]) -> None:
    stream_id = place.stream_id
    ((last,),) = execute(owner, f"select last_value from postbus_data.seq_{stream_id}")
    for forged in (last + 1, last + 10**6, last - 2**32 + 1, last - 2**32 - 1, 0, -5):
        with place.connect("publish") as publisher, publisher.transaction():
            # As the library has written it so far, too: without a number.
            entered = f"::{stream_id}={forged}:{stream_id}:"
            execute(publisher, "select set_config('postbus.entered', pg_current_xact_id()::text || %s, false)", entered)
            ((seq,),) = execute(publisher, f"select postbus_data.publish_{stream_id}('s.{forged + 10}', '1', null)")
            execute(owner, "select postbus.publish('mine', 's.other', %s)", str(seq))
            assert execute(owner, "select postbus.horizon('mine')")[0][0] < seq


def test_lease_tokens_cannot_be_reproduced_by_seeding(place: Place) -> None:
    def receive() -> list[str]:
        with place.connect("consume") as connection:
            execute(connection, "select setseed(0.42)")
            return [row[0] for row in execute(connection, "select (r.*) from postbus.receive('mine', 'c', 1) as r")]

    first = receive()
    second = receive()

    assert first
    assert second
    assert str(first[0])[:17] != str(second[0])[:17]


def test_a_role_with_rights_works_whatever_its_settings(place: Place) -> None:
    with place.connect("publish") as publisher, place.connect("consume") as consumer:
        for connection in (publisher, consumer):
            for setting in (
                "search_path = ''",
                "transform_null_equals = on",
                "array_nulls = off",
                "datestyle = 'German'",
                "intervalstyle = 'iso_8601'",
                "timezone = 'Asia/Kathmandu'",
                "bytea_output = 'escape'",
                "quote_all_identifiers = on",
                "enable_indexscan = off",
                "extra_float_digits = -15",
                "row_security = off",
                "plan_cache_mode = force_custom_plan",
                "client_min_messages = 'error'",
                "standard_conforming_strings = on",
                "default_transaction_deferrable = on",
                "xmlbinary = 'hex'",
                "lc_numeric = 'C'",
            ):
                execute(connection, f"set {setting}")
        key = f"w.{secrets.token_hex(4)}"
        assert execute(publisher, "select postbus.publish('mine', %s, '{}', dedup_id => %s)", key, key)[0][0] > 0
        assert execute(publisher, "select postbus.publish('mine', %s, '{}', dedup_id => %s)", key, key)[0][0] < 0
        assert execute(consumer, "select count(*) from postbus.read('mine', key => %s)", key) == [(1,)]
        received: list[Any] = []
        while rows := execute(consumer, "select ack_id, key from postbus.receive('mine', 'c', 100)"):
            received += rows
            execute(consumer, "select postbus.ack('mine', 'c', %s)", [ack_id for ack_id, _ in rows])
        assert key in [found for _, found in received]
