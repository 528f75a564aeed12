create or replace function postbus_data.room_edge(stream postbus_data.stream, horizon bigint)
returns bigint
language plpgsql
volatile
as $$
/*
The seq below which messages must go for a stream to stay within max_messages and max_storage; null when it does.

Storage is counted by whole segments, of which at least ten fit into max_storage (see roll_bytes).
*/
declare
    edge bigint;
begin
    if stream.max_storage is not null then
        select max(g.last_seq) + 1
        into edge
        from (
            select
                g.last_seq,
                sum(pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number)))) over (order by g.number desc) as size
            from postbus_data.segment as g
            where g.stream_id = stream.id
        ) as g
        where g.size > stream.max_storage
            and g.last_seq is not null;
    end if;
    return greatest(edge, postbus_data.count_edge(stream, horizon));
end
$$;
