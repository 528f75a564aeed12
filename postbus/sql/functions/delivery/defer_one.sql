create or replace function postbus.defer(
    stream text,
    consumer text,
    ack_id text,
    delay interval default null,
    until timestamptz default null,
    state json default null,
    state_bytes bytea default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Defer one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as defer of an array does.
*/
    select postbus.defer(stream, consumer, postbus_data.as_ack_ids(ack_id), delay, until, state, state_bytes, caller)
$$;
