create or replace function postbus_data.end_dedup(stream_id integer)
returns void
language plpgsql
as $$
/* Make a stream forget all message ids. */
declare
    old_number integer;
begin
    execute format('drop sequence if exists postbus_data.dedup_%s', stream_id);
    for old_number in
        delete from postbus_data.dedup as d where d.stream_id = end_dedup.stream_id returning d.number
    loop
        execute format('drop table postbus_data.dedup_%s_%s', stream_id, old_number);
    end loop;
end
$$;
