create or replace function postbus_data.ack_deliveries(consumer_id integer, epoch integer, ack_ids text[])
returns integer
language plpgsql
volatile
as $$
/*
Ack deliveries by their ack ids; see postbus.ack.

The common case, acking whole leases, takes two statements for all of them. Leases are locked in order of their tokens.
*/
#variable_conflict use_variable
declare
    tokens bigint[];
    gone_tokens bigint[];
    gone_count integer;
    named record;
    finished integer := 0;
begin
    if cardinality(ack_ids) = 1 and postbus_data.parse_token(ack_ids[1]) is not null then
        return postbus_data.ack_lease(consumer_id, epoch, postbus_data.parse_token(ack_ids[1]), null);
    end if;
    tokens := array(select postbus_data.parse_token(i) from unnest(ack_ids) as i where i ~ '^[0-9a-f]{16}$');
    if cardinality(tokens) = cardinality(ack_ids) then
        with gone as (
            delete from postbus_data.lease as l
            where l.token = any (tokens)
                and l.piece = 0
                and l.consumer_id + 0 = consumer_id
                and l.epoch = epoch
                and not l.has_history
                and not l.has_saved
                and not l.is_split
            returning l.token, cardinality(l.seqs) as size
        )
        select coalesce(array_agg(g.token), '{}'), coalesce(sum(g.size), 0) into gone_tokens, finished from gone as g;
        -- In a later statement: the first one has waited for sessions that were settling some of the messages.
        delete from postbus_data.settled as s where s.token = any (gone_tokens);
        get diagnostics gone_count = row_count;
        finished := finished - gone_count;
        if cardinality(gone_tokens) = cardinality(tokens) then
            return finished;
        end if;
        ack_ids := array(select i from unnest(ack_ids) as i where postbus_data.parse_token(i) <> all (gone_tokens));
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        finished := finished + postbus_data.ack_lease(consumer_id, epoch, named.token, named.seqs);
    end loop;
    return finished;
end
$$;
