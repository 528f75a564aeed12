create or replace function postbus_data.keep_needed(stream_id integer, number integer)
returns void
language plpgsql
volatile
as $$
/*
Copy what consumers still hold of a segment that is about to be dropped. What somebody has purged is not needed any more.

Its caller has the segment's table locked: no receive can lease more of it, and all that did have committed.
Touches  kept (insert).
*/
begin
    execute format(
        'insert into postbus_data.kept (stream_id, partition, seq, published_at, expires_at, key, %1$s, headers)
        select $1, l.partition, l.seq, l.published_at, l.expires_at, l.key, l.data::%3$s, l.headers
        from postbus_data.needed_messages($1) as n
        join %2$s as l on l.partition = n.partition and l.seq = n.seq
        where n.seq >= (select s.purged_seq from postbus_data.stream as s where s.id = $1)
        on conflict do nothing',
        (
            select case s.data_type when 'bytes' then 'bytes' else 'data' end
            from postbus_data.stream as s
            where s.id = keep_needed.stream_id
        ),
        postbus_data.log_table(stream_id, number),
        (
            select case s.data_type when 'bytes' then 'bytea' else 'text' end
            from postbus_data.stream as s
            where s.id = keep_needed.stream_id
        )
    ) using stream_id;
end
$$;
