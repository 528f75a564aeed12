create or replace function postbus_data.consume(
    reader postbus_data.consumer,
    max_messages integer,
    lease interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
Claim the next messages of a group and fetch them, in one call: the slow path of a stream's ack_and_receive_<id>. See
claim_ranges.

lease  null: without a lease.
*/
declare
    claimed postbus.claimed;
    messages postbus.delivery[];
    data_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
begin
    if expected_type <> data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', reader.stream_name, data_type, expected_type);
    end if;
    for claimed in select c.* from postbus_data.claim_ranges(reader, max_messages, lease, null, begin_with) as c loop
        messages := postbus_data.fetch_messages(
            reader.stream_id, claimed.partition, claimed.from_seq - 1, claimed.to_seq, claimed.message_count
        );
        return query
        select b.*
        from postbus_data.as_batches(
            array(
                select row(coalesce(claimed.token, '0000000000000000') || '-' || m.seq, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
                from unnest(messages) as m
            )
        ) as b;
    end loop;
end
$$;
