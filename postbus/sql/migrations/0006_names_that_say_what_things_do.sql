alter table postbus_data.position rename column hi to read_to_seq;
-- Postgres keeps the old name in the index.
alter table postbus_data.position_pkey rename column hi to read_to_seq;
do $$
begin
    -- From 18 on, that a column is not null is a constraint with a name.
    if pg_catalog.current_setting('server_version_num')::integer >= 180000 then
        alter table postbus_data.position rename constraint position_hi_not_null to position_read_to_seq_not_null;
    end if;
end
$$;

alter type postbus_data.entry rename to publish_target;
alter type postbus_data.fresh rename to publish_batch;
alter type postbus_data.claim rename to receive_state;
alter type postbus_data.picked rename to chosen_messages;

-- Internal functions have other names. All of them, and those of streams, are made again at the end of the upgrade.
do $$
declare
    internal regprocedure;
begin
    for internal in select p.oid from pg_catalog.pg_proc as p where p.pronamespace = 'postbus_data'::regnamespace loop
        execute pg_catalog.format('drop function %s', internal);
    end loop;
end
$$;
