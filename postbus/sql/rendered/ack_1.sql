-- Made from ../templates by `make generate`, for stream 1 with 8 partitions and segment 1; do not edit.
CREATE OR REPLACE FUNCTION postbus_data.ack_1(stream text, consumer text, ack_ids text[])
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_variable
declare
    token bigint;
    acked integer;
    reader postbus_data.consumer;
begin
    -- As ack_lease does. For a whole lease this is all.
    delete from postbus_data.lease as l
    using postbus_data.consumer as c
    where l.token = postbus_data.parse_token(ack_ids[1])
        and l.piece = 0
        and l.consumer_id + 0 = c.id
        and l.epoch = c.epoch
        and not l.has_history
        and not l.is_split
        and c.stream_name = 'orders'
        and c.name = consumer
        and cardinality(ack_ids) = 1
        and current_setting('transaction_isolation'::text) = 'read committed'::text
    returning l.token, cardinality(l.seqs) into token, acked;
    if token is null then
        reader := postbus_data.find_consumer('orders', consumer);
        perform postbus_data.check_isolation();
        return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
    elsif exists (select from postbus_data.settled as s where s.token = token) then
        -- In a later statement: the first has waited for whoever was settling some of its messages.
        with settled as (delete from postbus_data.settled as s where s.token = token returning s.seq)
        select acked - count(*) into acked from settled as s;
    end if;
    return acked;
end
$function$;
