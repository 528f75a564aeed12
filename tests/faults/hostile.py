"""A process with rights on a stream of its own, which does what it can to another stream until it is told to stop."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.faults.stopping import Stopping

OWN_STREAM: Final = "own"
_SETTINGS: Final = (
    "search_path = {schema}, pg_catalog",
    "search_path = pg_catalog",
    "search_path = ''",
    "datestyle = 'German'",
    "timezone = 'Asia/Kathmandu'",
    "transform_null_equals = on",
    "enable_indexscan = off",
    "plan_cache_mode = force_custom_plan",
    "row_security = off",
    "synchronous_commit = off",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_isolation = 'read committed'",
    "statement_timeout = '20ms'",
    "statement_timeout = 0",
    "lock_timeout = '1ms'",
)
_CONSUMERS: Final = ("key", "none", "partition")
_TABLES: Final = (
    *(
        "caller_key",
        "consumer",
        "dead_letter",
        "due",
        "history",
        "kept",
        "lease",
        "parked",
        "position",
        "redelivery_position",
        "sweep_state",
        "scheduled",
        "segment",
    ),
    *("settled", "stream", "stream_grant", "waiting", "log_1_1", "seq_1", "layout_1"),
)
_OBJECTS: Final = """
create schema {schema};
create function {schema}.always(a text, b text) returns boolean language sql as 'select true';
create operator {schema}.= (leftarg = text, rightarg = text, function = {schema}.always);
create function {schema}.always(a integer, b integer) returns boolean language sql as 'select true';
create operator {schema}.= (leftarg = integer, rightarg = integer, function = {schema}.always);
create function {schema}.always(a bytea, b bytea) returns boolean language sql as 'select true';
create operator {schema}.= (leftarg = bytea, rightarg = bytea, function = {schema}.always);
create function {schema}.pg_has_role(a text, b name, c text) returns boolean language sql as 'select true';
create type {schema}.sly as (name text);
create function {schema}.as_text(a {schema}.sly) returns text language sql as $$select 'orders'::text$$;
create cast ({schema}.sly as text) with function {schema}.as_text({schema}.sly) as implicit;
create function {schema}.to_caller(a text) returns postbus.caller language sql
as $$select row('postbus', '\\x00'::bytea)::postbus.caller$$;
"""


def attack(url: str, role: str, stream: str, directory: Path, name: str, seed: int) -> None:
    stopping = Stopping()
    chance = random.Random(seed)
    with (
        psycopg.connect(url, user=role, autocommit=True) as connection,
        tries_of(directory, name).open("ab", buffering=0) as tries,
    ):
        attacker = _Attacker(connection, stream, f"schema_{seed}", chance)
        while not stopping:
            attacker.step()
            tries.write(b".")


def tries_of(directory: Path, name: str) -> Path:
    """A file with a byte for each thing that an attacker has tried."""
    return directory / f"{name}.tries"


class _Attacker:
    def __init__(self, connection: psycopg.Connection[Any], stream: str, schema: str, chance: random.Random) -> None:
        self._connection = connection
        self._stream = stream
        self._schema = schema
        self._chance = chance
        self._callers = ["null"]
        for statement in _OBJECTS.format(schema=schema).strip().split(";\n"):
            connection.execute(statement.encode())

    def step(self) -> None:
        """Try something."""
        doing = self._chance.choice(
            (self._set, self._call, self._call, self._call, self._write, self._work, self._prepare)
        )
        try:
            if self._chance.random() < 0.3:
                with self._connection.transaction():
                    doing()
                    doing()
            else:
                doing()
        except psycopg.Error:
            pass

    def _run(self, statement: str) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.encode())

    def _set(self) -> None:
        self._run("set " + self._chance.choice(_SETTINGS).format(schema=self._schema))

    def _call(self) -> None:
        self._run("select * from " + self._attack())

    def _prepare(self) -> None:
        self._run("deallocate all")
        self._run(f"prepare attack as select * from {self._attack()}")
        for _ in range(3):
            self._run("execute attack")

    def _attack(self) -> str:
        """A call on the other stream, perhaps in the name of somebody else."""
        consumer = self._chance.choice(_CONSUMERS)
        of = f"'{self._stream}', '{consumer}'"
        tokens = "array['" + "', '".join(f"{self._chance.getrandbits(64):016x}" for _ in range(3)) + "']"
        call = self._chance.choice(
            (
                f"postbus.receive({of}, 10{{}})",
                f"postbus.ack({of}, {tokens}{{}})",
                f"postbus.nack({of}, {tokens}{{}})",
                f"postbus.extend({of}, {tokens}{{}})",
                f"postbus.terminate({of}, {tokens}{{}})",
                f"postbus.redrive({of}{{}})",
                f"postbus.discard({of}{{}})",
                f"postbus.publish('{self._stream}', 'a', '{{{{}}}}'{{}})",
                f"postbus.stats({of}{{}})",
                f"postbus.peek({of}{{}})",
                f"postbus.read('{self._stream}'{{}})",
                f"postbus_data.ack_and_receive_1({of}, 10, null, null, null, false)",
                # Its own stream is the second.
                f"postbus_data.ack_and_receive_2({of}, 10, null, null, {tokens}, false)",
                f"postbus_data.ack_1({of}, {tokens})",
                f"postbus_data.ack_2({of}, {tokens})",
                "postbus_data.publish_1('a', '{{}}', null)",
                f"postbus_data.ack_and_receive({of}, 10, null, null, {tokens}, false{{}})",
                f"postbus.seek({of}, 'latest')",
                f"postbus.drop_stream('{self._stream}')",
                f"postbus.purge('{self._stream}', everything => true)",
                "postbus_data.receive_with_decisions(null, 10, null, null, false, null)",
                "postbus_data.drop_segment(1, 1)",
                "postbus_data.set_layout(1, 1, 0, 1)",
                f"postbus_data.spark_publish('{self._stream}', 'w', 1, null, true, '{{{{}}}}', '{{{{}}}}'{{}})",
                "postbus.maintain()",
                f"postbus_data.reset_pending_since((select c from postbus_data.find_consumer({of}) as c))",
                f"postbus.redrive('{OWN_STREAM}', 'c', to_stream => '{self._stream}'{{}})",
                f"postbus.read(row('{OWN_STREAM}')::{self._schema}.sly{{}})",
                f"postbus.receive(row('{OWN_STREAM}')::{self._schema}.sly, 'key', 10{{}})",
            )
        )
        return call.format(f", caller => {self._chance.choice(self._callers)}" if self._chance.random() < 0.4 else "")

    def _write(self) -> None:
        table = f"postbus_data.{self._chance.choice(_TABLES)}"
        self._run(
            self._chance.choice(
                (
                    f"delete from {table}",
                    f"select * from {table}",
                    f"insert into {table} select * from {table}",
                    f"truncate {table}",
                    f"lock table {table}",
                    f"update {table} set seq = seq + 1",
                    f"select nextval('{table}')",
                    f"select setval('{table}', 1)",
                    f"create index on {table} (seq)",
                    f"alter table {table} disable row level security",
                    f"grant all on {table} to public",
                    f"create trigger t before insert on {table} for each row execute function {self._schema}.always()",
                )
            )
        )

    def _work(self) -> None:
        """Use the own stream, and keep the signatures that it yields."""
        is_local = self._chance.choice(("true", "false"))
        self._run(f"select set_config('postbus.entered', pg_current_xact_id()::text || '::1=999999:', {is_local})")
        self._run(f"select postbus.publish('{OWN_STREAM}', 'a', '1')")
        ids = [
            f"'{ack_id}'"
            for (ack_id,) in self._run(f"select ack_id from postbus.receive('{OWN_STREAM}', 'c', 5)").fetchall()
        ]
        if ids:
            # Of the own stream, for a consumer of the other.
            self._run(f"select postbus.ack('{self._stream}', 'none', array[{', '.join(ids)}])")
            self._run(f"select postbus.terminate('{OWN_STREAM}', 'c', array[{', '.join(ids)}])")
        ((caller,),) = self._run("select quote_literal(postbus.current_caller()::text)").fetchall()
        self._callers = [*self._callers[-10:], f"{caller}::postbus.caller"]
