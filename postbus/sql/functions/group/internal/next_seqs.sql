create or replace function postbus_data.next_seqs(stream_id integer, partition integer, after_seq bigint, to_seq bigint, max_messages integer)
returns bigint[]
language plpgsql
volatile
as $$
/* The seqs of the next messages of a partition with after_seq < seq <= to_seq, in order, from all segments that may hold some. */
#variable_conflict use_variable
declare
    segment record;
    found_here bigint[];
    seqs bigint[];
begin
    for segment in
        select g.number, g.after_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.sealed_at is null or g.last_seq > after_seq)
            and g.after_seq < to_seq
        order by g.number
    loop
        exit when cardinality(seqs) >= max_messages and seqs[max_messages] <= segment.after_seq;
        execute 'select array_agg(m.seq) from (select l.seq from postbus_data.log_' || stream_id::text || '_' || segment.number::text
            || ' as l where l.partition = $1 and l.seq > $2 and l.seq <= $3 order by l.seq limit $4) as m'
        into found_here
        using partition, after_seq, to_seq, max_messages;
        if seqs is null then
            seqs := found_here;
        elsif found_here is not null then
            seqs := array(select s from unnest(seqs || found_here) as s order by s limit max_messages);
        end if;
    end loop;
    return seqs;
end
$$;
