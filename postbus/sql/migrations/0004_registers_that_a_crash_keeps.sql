-- The register of tables of ids was drawn from, which Postgres logs 32 numbers ahead: a crash or a failover left it naming a table that does not exist, and
-- publishing with ids failed. From here on it is set. This sets each to the newest table that it may name, whether or not it has come to that.
do $$
declare
    found_stream record;
    newest integer;
begin
    for found_stream in
        select s.id, to_regclass('postbus_data.dedup_' || s.id) as register
        from postbus_data.stream as s
        where to_regclass('postbus_data.dedup_' || s.id) is not null
        order by s.id
    loop
        -- As maintenance does: nobody else moves the register.
        perform pg_advisory_xact_lock(1610612736, found_stream.id);
        select max(d.number) into newest from postbus_data.dedup as d where d.stream_id = found_stream.id;
        if newest is null then
            -- Maintenance took all tables for old ones.
            newest := 1;
            -- As prepare_dedup does, whose rights on it are granted at the end of the upgrade.
            execute pg_catalog.format(
                'create table postbus_data.dedup_%s_%s (id text collate "C" primary key, seq bigint not null, published_at timestamptz not null)',
                found_stream.id, newest
            );
            insert into postbus_data.dedup (stream_id, number) values (found_stream.id, newest);
        end if;
        if newest < pg_sequence_last_value(found_stream.register) then
            update postbus_data.dedup as d
            set rolled_at_seq = null,
                sealed_at = null
            where d.stream_id = found_stream.id
                and d.number = newest;
        end if;
        perform setval(found_stream.register, least(newest, pg_sequence_last_value(found_stream.register)));
        update postbus_data.dedup as d
        set begun_at = coalesce(d.begun_at, clock_timestamp())
        where d.stream_id = found_stream.id
            and d.number = pg_sequence_last_value(found_stream.register);
    end loop;
end
$$;
