create or replace function postbus.ack(
    stream text,
    consumer text,
    ack_id text,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ack one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as ack of an array does.
*/
    select postbus.ack(stream, consumer, postbus_data.as_ack_ids(ack_id), caller)
$$;
