create or replace function postbus_data.copy_held_messages(stream_id integer, number integer)
returns void
language plpgsql
volatile
as $$
/*
Copy the messages that consumers still hold of a segment that is about to be dropped. Purged messages are not copied.

Its caller has locked the segment's table: no receive can lease more of it, and all that did have committed.
Touches  kept (insert).
*/
declare
    stream postbus_data.stream;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    execute format(
        'insert into postbus_data.kept (stream_id, partition, seq, published_at, expires_at, key, %s, headers)
        select $1, l.partition, l.seq, l.published_at, l.expires_at, l.key, l.data%s, l.headers
        from postbus_data.held_messages($1) as n
        join %s as l on l.partition = n.partition and l.seq = n.seq
        where n.seq >= $2
        on conflict do nothing',
        case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        case stream.data_type when 'bytes' then '' else '::text' end,
        postbus_data.log_table(stream_id, number)
    ) using stream_id, stream.purged_seq;
end
$$;
