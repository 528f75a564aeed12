create or replace function postbus_data.spark_start(
    stream text,
    "start" text,
    from_seq bigint,
    from_time timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The seq after which a reader in Spark begins: before the oldest message kept ("earliest"), at messages published from now on
("latest"), at a seq, or at a time. It is durable, as in spark_end.

Raises   PB400 unless exactly one of them is given, PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    found_start bigint := postbus_data.start_position(found_id, "start", from_seq, from_time);
begin
    perform postbus_data.spark_flush();
    return greatest(found_start, (select s.start_seq - 1 from postbus_data.stream as s where s.id = found_id));
end
$$;
