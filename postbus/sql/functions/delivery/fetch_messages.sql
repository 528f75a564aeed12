create or replace function postbus_data.fetch_messages(
    stream_id integer,
    partition integer,
    after_seq bigint,
    to_seq bigint,
    max_messages integer,
    token bigint
)
returns postbus.delivery[]
language plpgsql
volatile
as $$
/*
The next messages of a partition with after_seq < seq <= to_seq, in order, as deliveries of a lease with that token.

Hot. It asks the fetchers of the segments that may hold such seqs: nearly always one, two where they overlap. A call by a name
that is made up has to be planned, which costs about as much as the reading.
*/
#variable_conflict use_variable
declare
    number integer;
    found_here postbus.delivery[];
    messages postbus.delivery[];
begin
    for number in
        select g.number
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.sealed_at is null or g.last_seq > after_seq)
            and g.after_seq < to_seq
        order by g.number
    loop
        execute 'select postbus_data.fetch_' || stream_id || '_' || number || '($1, $2, $3, $4, $5)'
        into found_here
        using partition, after_seq, to_seq, max_messages, lpad(to_hex(token), 16, '0') || '-';
        if messages is null then
            messages := found_here;
        elsif found_here is not null then
            messages := array(select m from unnest(messages || found_here) as m order by (m).seq limit max_messages);
        end if;
    end loop;
    return messages;
end
$$;
