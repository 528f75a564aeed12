-- What postbus.ack does, for one stream. See create_ack_function.
create or replace function postbus_data.ack_{stream_id}(stream text, consumer text, ack_ids text[])
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    first_id text := ack_ids[1];
    seqs bigint[];
    token bigint;
    acked integer;
    reader postbus_data.consumer;
begin
    -- A whole lease, or all of its messages in their order: one statement is all.
    if length(first_id) > 16 and left(ack_ids[cardinality(ack_ids)], 16) = left(first_id, 16) then
        seqs := array(
            select substr(i.id, 18)::bigint
            from unnest(ack_ids) as i (id)
            where left(i.id, 16) = left(first_id, 16)
                and i.id ~ '^.{16}-[0-9]{1,18}$'
        );
    end if;
    if cardinality(ack_ids) = coalesce(cardinality(seqs), 1) then
        delete from postbus_data.lease as l
        using postbus_data.consumer as c
        where l.token = postbus_data.parse_token(left(first_id, 16))
            and l.piece = 0
            and l.consumer_id + 0 = c.id
            and l.epoch = c.epoch
            and not l.has_history
            and not l.has_saved
            and not l.is_split
            and (l.seqs = seqs or length(first_id) = 16)
            and c.stream_name = {stream_name}
            and c.name = consumer
            and current_setting('transaction_isolation'::text) = 'read committed'::text
        returning l.token, cardinality(l.seqs) into token, acked;
    end if;
    if token is null then
        reader := postbus_data.find_consumer({stream_name}, consumer);
        perform postbus_data.check_isolation();
        return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
    elsif exists (select from postbus_data.settled as s where s.token = token) then
        -- In a later statement: the first has waited for whoever was settling some of its messages.
        with settled as (delete from postbus_data.settled as s where s.token = token returning s.seq)
        select acked - count(*) into acked from settled as s;
    end if;
    return acked;
end
$body$;
