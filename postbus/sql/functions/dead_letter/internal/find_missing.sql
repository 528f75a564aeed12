create or replace function postbus_data.find_missing(stream_id integer, partitions integer[], seqs bigint[])
returns bigint[]
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
/*
Which of these messages are neither in the log nor kept, given the partition and the seq of each.

Looks at their keys only, so it does not matter how large they are.

Locks    the segments that may have them, against being dropped until the transaction ends.
*/
declare
    conditions text;
    missing bigint[];
begin
    select string_agg(
        format(
            ' and not exists (select from postbus_data.log_%s_%s as l where l.partition = m.partition and l.seq = m.seq)', g.stream_id, g.number
        ),
        ''
    )
    into conditions
    from postbus_data.segment as g
    where g.stream_id = find_missing.stream_id
        and (g.sealed_at is null or g.last_seq >= (select min(s) from unnest(seqs) as s))
        and g.after_seq < (select max(s) from unnest(seqs) as s);
    execute format(
        'select array_agg(m.seq)
        from unnest($1, $2) as m (partition, seq)
        where not exists (select from postbus_data.kept as k where k.stream_id = $3 and k.partition = m.partition and k.seq = m.seq)%s',
        conditions
    )
    into missing
    using partitions, seqs, stream_id;
    return missing;
end
$$;
