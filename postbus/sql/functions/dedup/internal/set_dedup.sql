create or replace function postbus_data.set_dedup(stream_id integer, number integer)
returns void
language plpgsql
as $$
/*
Point the register at another table of ids, effective at once for every snapshot.

The register is set and never drawn from: Postgres logs a nextval 32 numbers ahead, so after a crash or on a promoted standby
the register would name a table that nobody prepared.
*/
begin
    perform setval(to_regclass('postbus_data.dedup_' || stream_id), number);
    update postbus_data.dedup as d
    set begun_at = clock_timestamp()
    where d.stream_id = set_dedup.stream_id
        and d.number = set_dedup.number;
end
$$;
