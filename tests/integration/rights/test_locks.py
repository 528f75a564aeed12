"""Advisory locks, where only the owner of Postbus may take them."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.rights.place import Place, execute

pytestmark = pytest.mark.newest_server

_FUNCTIONS = """
select p.oid::regprocedure::text
from pg_proc as p
where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^pg_(try_)?advisory_(xact_)?lock'
"""


def test_roles_publish_and_consume_without_a_right_to_advisory_locks_and_others_can_hold_nothing_up(
    place: Place, owner: psycopg.Connection[object]
) -> None:
    locks = [name for (name,) in execute(owner, _FUNCTIONS)]
    assert len(locks) == 16
    for lock in locks:
        execute(owner, f"revoke execute on function {lock} from public")
    try:
        with place.connect("publish") as publisher, place.connect("consume") as consumer:
            execute(publisher, "select postbus.publish('mine', 'locks', '1')")
            execute(publisher, f"select postbus_data.publish_{place.stream_id}('locks', '2', null)")
            received = execute(consumer, "select ack_id from postbus.receive('mine', 'c', 10)")
            assert execute(consumer, "select postbus.ack('mine', 'c', %s)", [ack_id for (ack_id,) in received]) == [
                (len(received),)
            ]
            for connection in (publisher, consumer):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    execute(connection, "select pg_advisory_lock_shared(%s, 0)", 2**30 + place.stream_id)
    finally:
        for lock in locks:
            execute(owner, f"grant execute on function {lock} to public")
