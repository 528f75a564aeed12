create or replace function postbus_data.as_sqs_dead_letter(consumer_id integer, message postbus.delivery, headers jsonb)
returns jsonb
language sql
volatile
as $$
/*
The headers of a dead letter for another queue of SQS, in which it keeps its id and time, and which says where it comes from; null if the consumer is not
the one of a queue that CreateQueue has made. What postbus/server/sqs makes of a seq, and of these headers, is the same.
*/
    select
        jsonb_build_object(
            'sqs-id', md5(q.id_base || ':' || message.seq)::uuid::text,
            'sqs-sent', floor(extract(epoch from message.published_at) * 1000)::bigint::text
        )
        || headers
        || jsonb_build_object('sqs-source', q.name)
    from postbus_data.sqs_queue as q
    where q.consumer_id = as_sqs_dead_letter.consumer_id
        and q.owns_stream
$$;
