create or replace function postbus_data.find_sqs_queue(name text)
returns postbus_data.sqs_queue
language plpgsql
stable
as $$
/* The row of a queue for clients of SQS. Raises PB404 when there is none. */
declare
    queue postbus_data.sqs_queue;
begin
    select q.* into queue from postbus_data.sqs_queue as q where q.name = find_sqs_queue.name;
    if queue.id is null then
        raise exception using
            errcode = 'PB404', message = format('queue "%s" does not exist', left(name, 90)), hint = 'list them with: postbus sqs ls';
    end if;
    return queue;
end
$$;
