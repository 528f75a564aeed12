create or replace function postbus_data.spark_lost(
    stream_id integer,
    after_seq bigint,
    caller postbus.caller default postbus.current_caller(),
    out purged boolean,
    out dropped boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Whether messages above a seq are gone: purged, even if they can still be read for a moment, or dropped with their segment. Nulls
for a caller that may not read the stream.
*/
declare
    first_kept bigint := (
        select s.start_seq
        from postbus_data.stream as s
        where s.id = stream_id
            and postbus_data.has_right(caller, s.id, 'consume', 'read')
    );
begin
    -- Above the last message of all that was dropped, there are seqs without a message: of duplicates, or rolled back.
    dropped := first_kept > after_seq + 1
        and after_seq < (select min(g.after_seq) from postbus_data.segment as g where g.stream_id = spark_lost.stream_id)
        and coalesce(
            (
                select bool_or(spark_lost.after_seq < d.last_seq and 0 < any (d.counts))
                from postbus_data.dropped as d
                where d.stream_id = spark_lost.stream_id
            ),
            true
        );
    purged := dropped or (
        first_kept > after_seq + 1 and coalesce(postbus_data.next_seq(stream_id, after_seq) < first_kept, false)
    );
end
$$;
