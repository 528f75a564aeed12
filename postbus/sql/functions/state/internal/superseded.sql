create or replace function postbus_data.superseded(stream_id integer, messages postbus.delivery[])
returns bigint[]
language plpgsql
volatile
as $$
/* The seqs of those messages that are not the current version of their key; none in a stream without one message per key. */
declare
    seqs bigint[];
begin
    if (select s.one_message_per_key from postbus_data.stream as s where s.id = stream_id) then
        execute format(
            'select array_agg(m.seq)
            from unnest($1) as m
            where not exists (select from postbus_data.state_%s as t where t.key = m.key and t.seq = m.seq)',
            stream_id
        ) into seqs using messages;
    end if;
    return coalesce(seqs, '{}');
end
$$;
