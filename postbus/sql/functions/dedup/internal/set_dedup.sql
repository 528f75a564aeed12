create or replace function postbus_data.set_dedup(stream_id integer, number integer)
returns void
language plpgsql
as $$
/*
Let ids go to another table, at once and for every snapshot.

The register is set, never drawn from: Postgres logs a nextval 32 numbers ahead, so that after a crash or on a promoted standby the register would name a
table that nobody prepared.
*/
begin
    perform setval(to_regclass('postbus_data.dedup_' || stream_id), number);
    update postbus_data.dedup as d
    set begun_at = clock_timestamp()
    where d.stream_id = set_dedup.stream_id
        and d.number = set_dedup.number;
end
$$;
