create or replace function postbus_data.finish(consumer_id integer, epoch integer, ack_ids text[])
returns integer
language plpgsql
volatile
as $$
/* Finish the deliveries named by these ack ids; see postbus.ack. */
declare
    named record;
    finished integer := 0;
begin
    if cardinality(ack_ids) = 1 and length(ack_ids[1]) = 16 then
        -- What a worker does all day: a whole lease, by its token.
        return postbus_data.finish_lease(consumer_id, epoch, postbus_data.parse_token(ack_ids[1]), null);
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        finished := finished + postbus_data.finish_lease(consumer_id, epoch, named.token, named.seqs);
    end loop;
    return finished;
end
$$;
