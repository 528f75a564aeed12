-- Messages have priorities: each level has partitions and a redelivery log of its own.

create table postbus_data.level (
    id bigint generated always as identity primary key,
    stream_id integer not null,
    priority integer not null,
    since_seq bigint not null
);
create index level_stream on postbus_data.level (stream_id, priority);

create table postbus_data.urgent_position (
    consumer_id integer not null,
    epoch integer not null,
    read_to_count bigint not null,
    read_to_seq bigint not null,
    primary key (consumer_id, epoch, read_to_count)
);

alter table postbus_data.consumer add column ageing interval;
alter type postbus.consumer_info add attribute ageing interval;
alter table postbus_data.redelivery_position add column lane integer not null default 0;
alter table postbus_data.redelivery_position
    drop constraint redelivery_position_pkey,
    add primary key (consumer_id, epoch, lane, read_to_n);
alter table postbus_data.due add column lane integer not null default 0;
alter table postbus_data.due
    drop constraint due_pkey,
    add primary key (consumer_id, epoch, lane, n);
alter table postbus_data.schedule add column priority integer not null default 4;
alter table postbus_data.scheduled add column priority integer not null default 4;
alter table postbus_data.spark_staging add column priorities integer[];
alter table postbus_data.spark_staging alter column priorities set storage external;

alter type postbus_data.publish_batch add attribute priorities integer[];
alter type postbus.message add attribute priority integer;
alter type postbus.delivery add attribute priority integer;
alter type postbus.dead_letter add attribute priority integer;
alter type postbus.peeked add attribute priority integer;
alter type postbus.schedule_info add attribute priority integer;

do $$
declare
    stream_id integer;
begin
    for stream_id in select s.id from postbus_data.stream as s order by s.id loop
        execute pg_catalog.format('create sequence postbus_data.urgent_%s minvalue 0 start 0 cache 1', stream_id);
        perform setval(pg_catalog.format('postbus_data.urgent_%s', stream_id), 0);
    end loop;
end
$$;

-- Their parameters or results change.
drop function if exists
    postbus.create_consumer, postbus.alter_consumer, postbus.publish_many, postbus.create_schedule, postbus.alter_schedule, postbus.list_scheduled,
    postbus_data.has_due, postbus_data.redelivery_position_of, postbus_data.claim_due, postbus_data.insert_messages, postbus_data.check_batch,
    postbus_data.check_messages, postbus_data.schedule, postbus_data.spark_stage,
    postbus_data.count_backlog, postbus.consumer_overview, postbus.stats;
do $$
declare
    former regprocedure;
begin
    for former in
        select p.oid
        from pg_catalog.pg_proc as p
        where p.pronamespace = 'postbus'::regnamespace
            and p.proname = 'publish'
    loop
        execute 'drop function ' || former;
    end loop;
end
$$;
