"""What the functions that a role may call do to streams on which it has no right."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.integration.rights.functions import ASKING, ELSEWHERE, SILENT
from tests.integration.rights.place import RIGHTS, Place, contents, execute, of_consumers

pytestmark = pytest.mark.newest_server


def test_every_asking_function_is_tried_below() -> None:
    assert {*ELSEWHERE, *SILENT} == ASKING["postbus"] | ASKING["postbus_data"]


@pytest.mark.parametrize("right", [*RIGHTS, "none"])
def test_no_function_does_anything_to_a_stream_on_which_the_caller_has_no_right(
    place: Place, owner: psycopg.Connection[Any], right: str
) -> None:
    before = contents(owner)
    tokens = [lease for (lease,) in execute(owner, "select lpad(to_hex(token), 16, '0') from postbus_data.lease")]
    ((other, consumer),) = execute(
        owner, "select stream_id, id from postbus_data.consumer where stream_name = 'other' and name = 'c'"
    )
    with place.connect(right) as connection:
        for name, call in ELSEWHERE.items():
            statement = f"select * from {call.format(tokens=f'array{tokens}')}"
            # Also with a caller that the role has thought up.
            for forged in (
                "",
                ", caller => null",
                ", caller => row('postbus', '')",
                ", caller => row('postbus', null)",
            ):
                with pytest.raises(psycopg.Error) as refused:
                    execute(connection, f"{statement[:-1]}{forged})")
                assert refused.value.sqlstate == "PB404", name
        for question in SILENT.values():
            assert execute(connection, question.format(other=other, consumer=consumer)) == []

    assert contents(owner) == before


def test_the_functions_of_a_stream_do_nothing_to_another_that_they_are_told_to_use(
    place: Place, owner: psycopg.Connection[Any]
) -> None:
    before = of_consumers(owner, "other")
    assert before["postbus_data.lease"]
    tokens = [lease for (lease,) in execute(owner, "select lpad(to_hex(token), 16, '0') from postbus_data.lease")]
    calls = (
        f"postbus_data.ack_{place.stream_id}('other', 'c', array{tokens})",
        *(f"postbus_data.ack_{place.stream_id}('other', 'c', array['{token}'])" for token in tokens),
        f"postbus_data.ack_and_receive_{place.stream_id}('other', 'c', 10, null, 'json', null, false)",
        f"postbus_data.ack_and_receive_{place.stream_id}('other', 'g', 10, null, 'json', null, true)",
    )
    with place.connect("consume") as connection:
        # Often, because now and then it does periodic work too.
        for call in calls * 50:
            execute(connection, f"select * from {call}")

    assert of_consumers(owner, "other") == before


@pytest.mark.parametrize(
    ("right", "call"),
    [
        ("publish", "postbus.read('mine')"),
        ("publish", "postbus.receive('mine', 'c')"),
        ("read", "postbus.publish('mine', 'a', '1')"),
        ("read", "postbus.receive('mine', 'c')"),
        ("read", "postbus.dead_letters('mine', 'c')"),
        ("consume", "postbus.publish('mine', 'a', '1')"),
        ("consume", "postbus.redrive('mine', 'c', to_stream => 'mine')"),
        ("consume", "postbus_data.spark_commit('mine', 'new', 1)"),
    ],
)
def test_another_right_on_the_same_stream_is_refused_by_name(place: Place, right: str, call: str) -> None:
    with place.connect(right) as connection, pytest.raises(psycopg.Error, match="may not") as refused:
        execute(connection, f"select * from {call}")

    assert refused.value.sqlstate == "PB403"


@pytest.mark.parametrize(
    "call",
    [
        "create_stream('new')",
        "alter_stream('mine', max_messages => 1)",
        "drop_stream('mine')",
        "create_consumer('mine', 'new')",
        "alter_consumer('mine', 'c', max_deliver => 1)",
        "drop_consumer('mine', 'c')",
        "pause('mine', 'c')",
        "resume('mine', 'c')",
        "seek('mine', 'c', 'latest')",
        "replay('mine', 'c')",
        "purge('mine', everything => true)",
        "delete_key('mine', 'k.1')",
        "maintain()",
        "sweep()",
        "horizon_holders('mine')",
        "lock_holders()",
        "grant_stream('mine', 'postbus', 'read')",
        "revoke_stream('mine', 'postbus', 'read')",
        "create_roles()",
        "create_token('t', 'd', array['manage'])",
        "list_tokens()",
        "find_token('d')",
        "revoke_token(1)",
        "list_pipelines()",
    ],
)
def test_functions_that_manage_streams_are_for_the_owner(place: Place, call: str) -> None:
    for right in RIGHTS:
        with place.connect(right) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(connection, f"select postbus.{call}")
