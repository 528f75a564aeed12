create or replace function postbus_data.spark_flush()
returns void
language plpgsql
volatile
as $$
/*
Make this transaction's commit wait until everything logged before it is on disk.

A seq drawn by a publisher that rolled back may not be on disk yet. If it left the database as an offset and Postgres crashed,
it would be drawn again, for a message that a reader at that offset never sees.
*/
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    perform pg_logical_emit_message(true, 'postbus', '');
end
$$;
