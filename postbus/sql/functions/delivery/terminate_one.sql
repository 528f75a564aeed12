create or replace function postbus.terminate(
    stream text,
    consumer text,
    ack_id text,
    reason text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Make one delivery a dead letter at once. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as terminate of an array does.
*/
    select postbus.terminate(stream, consumer, postbus_data.as_ack_ids(ack_id), reason, caller)
$$;
