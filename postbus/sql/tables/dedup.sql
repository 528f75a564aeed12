-- A row is a table of a stream's message ids, postbus_data.dedup_<stream id>_<number>. New ids go to the table that the
-- register dedup_<stream id> names. The one before it is still searched while it may hold ids within the window. Old tables are
-- dropped, so ids are never deleted one by one.
create table postbus_data.dedup (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null,
    -- The register may name a table only after the transaction that prepared it has committed.
    prepared_by xid8 not null default pg_current_xact_id(),
    begun_at timestamptz,
    -- Publishers that may still write here hold a horizon lock at or below this. Null until the register has moved on.
    rolled_at_seq bigint,
    -- Since when nobody can write here.
    sealed_at timestamptz,
    primary key (stream_id, number)
);
