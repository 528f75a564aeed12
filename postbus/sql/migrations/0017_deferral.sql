-- Deferred messages come back with a saved state.

create table postbus_data.saved (
    consumer_id integer not null,
    seq bigint not null,
    deferrals integer not null,
    state json,
    bytes bytea,
    saved_at timestamptz not null default clock_timestamp(),
    primary key (consumer_id, seq)
);
alter table postbus_data.lease add column has_saved boolean not null default false;
alter type postbus.delivery add attribute deferrals integer, add attribute state text, add attribute state_bytes bytea;
alter type postbus.dead_letter add attribute deferrals integer, add attribute saved_state text, add attribute saved_bytes bytea;
alter type postbus.peeked add attribute deferrals integer, add attribute saved_state text, add attribute saved_bytes bytea;

-- They return what is saved, too.
drop function if exists
    postbus_data.ack_and_receive_in_any_session, postbus_data.ack_and_receive, postbus_data.receive_with_decisions;
do $$
declare
    written regprocedure;
begin
    for written in
        select p.oid
        from pg_catalog.pg_proc as p
        where p.pronamespace = 'postbus_data'::regnamespace
            and p.proname ~ '^ack_and_receive_[0-9]+$'
    loop
        execute 'drop function ' || written;
    end loop;
end
$$;
