"""Which process of the library does the upkeep. The server does it by itself, so there are no requests."""

from __future__ import annotations

from datetime import timedelta

from postbus.operations.call import Call, Sql, first

_MAY: str = """
select has_function_privilege(p.oid, 'execute') and not pg_is_in_recovery()
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = 'postbus_data'
    and p.proname = 'take_upkeep'
"""


def may() -> Call[bool]:
    """Whether this role may do the upkeep in this database. Asked first: a refusal would be an error in Postgres's log."""
    return Call(Sql(_MAY, (), lambda found: bool(found and found[0][0])), None, repeatable=True)


def take(holder: str, lasts: timedelta) -> Call[bool]:
    """Take the upkeep or keep it, unless another process has it."""
    return Call(
        Sql("select postbus_data.take_upkeep($1::text::uuid, $2)", (holder, lasts), first), None, repeatable=True
    )
