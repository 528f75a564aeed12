create or replace function postbus_data.saved_of(consumer_id integer, seqs bigint[])
returns json
language sql
volatile
as $$
/*
What was saved with these messages of a consumer: an array in their order, with an object of deferrals, state and bytes (in base64) for
each that was deferred, and null for the others. Null if none was.

Volatile, to see what was saved by deferrals that committed after the statement of the receive had begun.
*/
    select case
        when count(s.seq) > 0 then json_agg(
            case
                when s.seq is not null then json_build_object(
                    'deferrals', s.deferrals, 'state', s.state, 'bytes', translate(encode(s.bytes, 'base64'), E'\n', '')
                )
            end
            order by m.place
        )
    end
    from unnest(saved_of.seqs) with ordinality as m (seq, place)
    left join postbus_data.saved as s on s.consumer_id = saved_of.consumer_id and s.seq = m.seq
$$;
