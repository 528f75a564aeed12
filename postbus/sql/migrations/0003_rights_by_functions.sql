-- Roles use streams through functions that act with the rights of their owner. Row security and the rights on tables go; those on a stream's functions
-- and log are granted again with the functions.
do $$
declare
    secured record;
    granted text;
begin
    for secured in
        select p.tablename as name from pg_catalog.pg_policies as p where p.schemaname = 'postbus_data' and p.policyname = 'granted'
    loop
        execute pg_catalog.format('drop policy granted on postbus_data.%I', secured.name);
        execute pg_catalog.format('alter table postbus_data.%I disable row level security', secured.name);
    end loop;
    for granted in
        select distinct g.role from postbus_data.stream_grant as g join pg_catalog.pg_roles as r on r.rolname = g.role
    loop
        execute pg_catalog.format('revoke all on all tables in schema postbus, postbus_data from %I', granted);
        execute pg_catalog.format('revoke all on all sequences in schema postbus, postbus_data from %I', granted);
    end loop;
end
$$;

drop function postbus_data.may_use_consumer(integer);
drop function postbus_data.may_use(integer, text[]);

alter table postbus_data.history replica identity full;
alter table postbus_data.stream_grant replica identity full;

create table postbus_data.caller_key (
    singleton boolean primary key default true check (singleton),
    secret bytea not null
);
insert into postbus_data.caller_key (secret)
values (
    pg_catalog.sha256(
        pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
        || pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
    )
);

create type postbus.caller as (
    role text,
    signature bytea
);

create view postbus_data.current_caller with (security_barrier) as
select
    row(
        current_user::text,
        sha256(
            k.secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || convert_to(current_user::text, 'UTF8')
            || k.secret
        )
    )::postbus.caller as caller
from postbus_data.caller_key as k;

-- They take a caller now, or return something else.
do $$
declare
    changed regprocedure;
begin
    for changed in
        select p.oid
        from pg_catalog.pg_proc as p
        where (
                p.pronamespace = 'postbus'::regnamespace
                and p.proname in (
                    'ack', 'backlog', 'cancel', 'claim', 'commit', 'consumer_info', 'consumer_overview', 'dead_letters', 'describe_stream',
                    'discard', 'extend', 'fetch', 'history', 'horizon', 'join_group', 'leave_group', 'list_consumers', 'list_scheduled', 'list_streams',
                    'nack', 'overview', 'peek', 'publish', 'publish_many', 'publish_rate', 'read', 'receive', 'redrive', 'release', 'reschedule', 'state',
                    'stats', 'stream_info', 'terminate'
                )
            )
            or (
                p.pronamespace = 'postbus_data'::regnamespace
                and p.proname in (
                    'enter', 'history_bounds', 'pulse', 'pulse_of_consumers', 'receive_batches', 'refuse_caller', 'serve', 'spark_commit',
                    'spark_discard', 'spark_end', 'spark_lost', 'spark_publish', 'spark_segments', 'spark_stage', 'spark_stage_rows', 'spark_start',
                    'spark_state', 'spark_written', 'stream_objects'
                )
            )
    loop
        execute pg_catalog.format('drop function %s', changed);
    end loop;
end
$$;
