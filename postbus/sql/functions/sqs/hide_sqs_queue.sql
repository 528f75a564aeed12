create or replace function postbus.hide_sqs_queue(name text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take a queue from clients of SQS. Its stream and consumer stay as they are.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (delete).
*/
begin
    delete from postbus_data.sqs_queue as q where q.id = (postbus_data.find_sqs_queue(hide_sqs_queue.name)).id;
end
$$;
