create or replace function postbus_data.drop_sqs_queue(name text)
returns void
language plpgsql
volatile
as $$
/*
Delete a queue, as DeleteQueue does: with its stream, if CreateQueue made that. Otherwise it is only hidden.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (delete), and as drop_stream does.
Locks    as drop_stream.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
begin
    delete from postbus_data.sqs_queue as q where q.id = queue.id;
    if queue.owns_stream then
        perform postbus.drop_stream((select s.name from postbus_data.stream as s where s.id = queue.stream_id));
    end if;
end
$$;
