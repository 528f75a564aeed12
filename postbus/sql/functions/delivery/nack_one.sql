create or replace function postbus.nack(
    stream text,
    consumer text,
    ack_id text,
    delay interval default null,
    reason text default null,
    untried boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Nack one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as nack of an array does.
*/
    select postbus.nack(stream, consumer, postbus_data.as_ack_ids(ack_id), delay, reason, untried, caller)
$$;
