create or replace function postbus_data.spark_lost(stream_id integer, after_seq bigint, out purged boolean, out dropped boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Whether messages above a seq are gone: purged, though perhaps still there to be read a last time, or dropped with their segment.
*/
declare
    first_kept bigint := (select s.start_seq from postbus_data.stream as s where s.id = stream_id);
begin
    dropped := first_kept > after_seq + 1 and after_seq < (
        select min(g.after_seq) from postbus_data.segment as g where g.stream_id = spark_lost.stream_id
    );
    purged := dropped or (
        first_kept > after_seq + 1 and coalesce(postbus_data.next_seq(stream_id, after_seq) < first_kept, false)
    );
end
$$;
