create or replace function postbus_data.draw_seqs(entry postbus_data.publish_target, message_count integer, out seqs bigint[], out layout bigint)
language plpgsql
volatile
as $$
/*
Draw the numbers of some messages, and say where to write them: the layout was the same before and after they were drawn. So all that goes to an older
layout has lower numbers than what goes to a newer one, and a key's messages, which are read in this order, stay in the order of their numbers.
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
