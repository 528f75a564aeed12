create or replace function postbus.expose_sqs_queue(stream text, consumer text, name text default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Let clients of SQS use a consumer as a queue: they receive its messages and delete, which is an ack; what they send is published to its stream.

name  1 to 80 letters, digits, "-" or "_"; null: <stream>-<consumer>. With ".fifo" at its end it is a FIFO queue: the consumer must keep the order of keys.

Returns  the name.
Raises   PB400 for an invalid name, PB404 for an unknown stream or consumer, PB409 for a group, a name that is taken, or a consumer that is a queue already.
Touches  sqs_queue (insert).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    existing postbus_data.sqs_queue;
begin
    name := coalesce(name, stream || '-' || consumer);
    perform postbus_data.check_sqs_name(name);
    if reader.is_group then
        raise exception using
            errcode = 'PB409', message = format('%s is a group, which has no single acks', consumer), hint = 'create a consumer for the queue';
    end if;
    if name like '%.fifo' and reader.ordering = 'none' then
        raise exception using
            errcode = 'PB409', message = format('consumer "%s" keeps no order, so it cannot be a FIFO queue', consumer),
            hint = 'choose a name without ".fifo", or a consumer in order "key"';
    end if;
    select q.* into existing from postbus_data.sqs_queue as q where q.name = name or q.consumer_id = reader.id;
    if existing.name = name and existing.consumer_id = reader.id then
        return name;
    elsif existing.consumer_id = reader.id then
        raise exception using
            errcode = 'PB409', message = format('consumer "%s" is shown as queue "%s" already', consumer, existing.name),
            hint = format('hide that first: postbus sqs hide %s', existing.name);
    end if;
    insert into postbus_data.sqs_queue as q (name, stream_id, consumer_id, owns_stream, attributes)
    values (
        name, reader.stream_id, reader.id, false,
        jsonb_build_object('VisibilityTimeout', least(43200, extract(epoch from reader.ack_wait)::integer)::text)
    )
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'PB409', message = format('queue "%s" already exists', name), hint = 'choose another name with --as';
    end if;
    return name;
end
$$;
