create or replace function postbus_data.draw_seqs(entry postbus_data.publish_target, message_count integer, out seqs bigint[], out layout bigint)
language plpgsql
volatile
as $$
/*
Draw the seqs of some messages, and say where to write them: the layout was the same before and after they were drawn. So all
messages of an older layout have lower seqs than those of a newer one, and the messages of a key, which are read in this order,
stay in the order of their seqs.
*/
declare
    sequence regclass := entry.sequence;
    register regclass := to_regclass('postbus_data.layout_' || entry.stream_id::text);
begin
    layout := entry.layout;
    loop
        select array_agg(nextval(sequence)) into seqs from generate_series(1, message_count);
        exit when layout = pg_sequence_last_value(register);
        layout := pg_sequence_last_value(register);
    end loop;
end
$$;
